import type { Operation } from './connector.ts';
import { addAssignees, removeAssignees } from './github/assignees.ts';
import { createComment, deleteComment } from './github/comments.ts';
import { addLabels, removeLabels } from './github/labels.ts';
import { setStatus } from './github/status.ts';
import { httpGet, httpRequest } from './http/request.ts';
import { invokeModel } from './model/invoke.ts';
import { sendEvent } from './pagerduty/events.ts';
import { addWorkNote, getIncident, updateIncident } from './servicenow/incidents.ts';
import { postMessage, updateMessage } from './slack/messages.ts';

/**
 * One line per operation; a workflow step names one of them in `tool`. Its risk is what it costs to put a mistake right:
 * low, another write does; medium, somebody was sent to work or paged, or something is gone; what is high, a workflow says.
 */
const OPERATIONS: readonly Operation[] = [
  getIncident,
  updateIncident,
  addWorkNote,
  addLabels,
  removeLabels,
  addAssignees,
  removeAssignees,
  createComment,
  deleteComment,
  setStatus,
  postMessage,
  updateMessage,
  sendEvent,
  httpGet,
  httpRequest,
  invokeModel,
];

const byTool = new Map(OPERATIONS.map((operation) => [operation.tool, operation]));

export const findOperation = (tool: string): Operation | undefined => byTool.get(tool);

/** The tools that reach outside. */
export const toolNames = (): string[] => [...byTool.keys()];
