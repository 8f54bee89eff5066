import type { Operation } from './connector.ts';
import { addLabels } from './github.ts';
import { addWorkNote, updateIncident } from './servicenow.ts';
import { postMessage } from './slack.ts';

/** One line per operation; a workflow step names one of them in `tool`. */
const OPERATIONS: readonly Operation[] = [updateIncident, addWorkNote, addLabels, postMessage];

/** `transform` hands on its rendered input; `approval` waits for a person. Neither touches anything outside. */
export const INNER_TOOLS = ['transform', 'approval'] as const;

const byTool = new Map(OPERATIONS.map((operation) => [operation.tool, operation]));

export const findOperation = (tool: string): Operation | undefined => byTool.get(tool);

export const toolNames = (): string[] => [...INNER_TOOLS, ...byTool.keys()];
