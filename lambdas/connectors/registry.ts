import { rollBackCommand, runCommand } from './agent/command.ts';
import type { Operation } from './connector.ts';
import { addAssignees, removeAssignees } from './github/assignees.ts';
import { createComment, deleteComment, updateComment } from './github/comments.ts';
import { closeIssue, createIssue, reopenIssue } from './github/issues.ts';
import { addLabels, removeLabels } from './github/labels.ts';
import { setStatus } from './github/status.ts';
import { dispatchWorkflow } from './github/workflows.ts';
import { httpGet, httpRequest } from './http/request.ts';
import { invokeModel } from './model/invoke.ts';
import { sendEvent } from './pagerduty/events.ts';
import { addWorkNote, findIncidents, getIncident, updateIncident } from './servicenow/incidents.ts';
import { createRecord, findRecord, getRecord, updateAnyRecord } from './servicenow/records.ts';
import { SESSION_TOOL, startSession } from './session/session.ts';
import { postMessage, updateMessage } from './slack/messages.ts';

/**
 * One line per operation; the `tool` of a workflow step names one of them. Risk is the cost of correcting a mistake.
 * Low: another write corrects it. Medium: a person was assigned or paged, or something is deleted. Only workflows set high.
 */
const OPERATIONS: readonly Operation[] = [
  getIncident,
  findIncidents,
  updateIncident,
  addWorkNote,
  getRecord,
  findRecord,
  createRecord,
  updateAnyRecord,
  addLabels,
  removeLabels,
  addAssignees,
  removeAssignees,
  createComment,
  updateComment,
  deleteComment,
  createIssue,
  closeIssue,
  reopenIssue,
  setStatus,
  dispatchWorkflow,
  postMessage,
  updateMessage,
  sendEvent,
  httpGet,
  httpRequest,
  invokeModel,
  runCommand,
  rollBackCommand,
  startSession,
];

const byTool = new Map(OPERATIONS.map((operation) => [operation.tool, operation]));

export const findOperation = (tool: string): Operation | undefined => byTool.get(tool);

/** The tools that call external systems, for steps of workflows. */
export const toolNames = (): string[] => OPERATIONS.filter(({ undoOnly }) => !undoOnly).map(({ tool }) => tool);

/** The tools whose calls can be proposed from outside a workflow. A session must not start more of them. */
export const proposableTools = (): string[] => toolNames().filter((tool) => tool !== SESSION_TOOL);
