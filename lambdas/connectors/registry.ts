import type { Operation } from './connector.ts';
import { addLabels } from './github.ts';
import { addWorkNote, updateIncident } from './servicenow.ts';
import { postMessage } from './slack.ts';

/** One line per operation; a workflow step names one of them in `tool`. */
const OPERATIONS: readonly Operation[] = [updateIncident, addWorkNote, addLabels, postMessage];

/** `transform` hands on its rendered input, the others wait: for a person, a time, a signal. None touches anything outside. */
export const INNER_TOOLS = ['transform', 'approval', 'wait', 'wait.external'] as const;

const byTool = new Map(OPERATIONS.map((operation) => [operation.tool, operation]));

export const findOperation = (tool: string): Operation | undefined => byTool.get(tool);

export const toolNames = (): string[] => [...INNER_TOOLS, ...byTool.keys()];
