import type { Action } from '../contract/runs/actions.ts';
import { GET_RESULT } from './server-tools.ts';

/** Approvals live for days; the action can be read after its task. */
const TASK_POLL_MS = 5_000;

const OPEN: readonly Action['status'][] = ['pending', 'waiting_approval'];
export const isOpen = ({ status }: Action): boolean => OPEN.includes(status);

/** What a client gets: the same as JSON and as text, because not every client shows both. */
export interface ToolResult {
  content: { type: 'text'; text: string }[];
  structuredContent: Record<string, unknown>;
  isError?: boolean;
  [key: string]: unknown;
}

export function toolResult(action: Action, consoleUrl?: string): ToolResult {
  const { actionId, status, tool, target, result, reasons, error, approval } = action;
  const shown = {
    ...{ status, actionId, tool, target },
    ...(result !== null && { result }),
    ...(reasons.length > 0 && { reasons }),
    ...(error && { error }),
    ...(approval && { approval: { ...approval, ...(consoleUrl && { url: `${consoleUrl}${approval.path}` }) } }),
    ...(isOpen(action) && { next: nextOf(action) }),
  };
  return asResult(shown, !isOpen(action) && status !== 'succeeded');
}

const nextOf = ({ status, actionId }: Action): string =>
  `${status === 'pending' ? 'The call is not finished' : 'People must decide'}; later, call ${GET_RESULT} with actionId ${actionId}. Do not repeat this call.`;

/** A call that was not accepted: nothing was written. */
export const refusedResult = (code: string, message: string): ToolResult =>
  asResult({ status: 'refused', error: { code, message } }, true);

const asResult = (shown: Record<string, unknown>, isError: boolean): ToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(shown) }],
  structuredContent: shown,
  ...(isError && { isError }),
});

/** The handle of an open action, for clients with the tasks extension. Its id is that of the action. */
export const taskHandle = (action: Action) => ({
  resultType: 'task',
  ...taskFields(action),
  status: 'working' as const,
});

/** The task of an action, with the result of the call when it has ended. */
export function task(action: Action, consoleUrl?: string) {
  if (isOpen(action)) return { ...taskFields(action), status: 'working' as const };
  if (action.status === 'canceled') return { ...taskFields(action), status: 'cancelled' as const };
  // A call that was denied or failed has a result that says so.
  return {
    ...taskFields(action),
    status: 'completed' as const,
    result: { resultType: 'complete', ...toolResult(action, consoleUrl) },
  };
}

const taskFields = (action: Action) => ({
  taskId: action.actionId,
  createdAt: action.createdAt,
  lastUpdatedAt: action.completedAt ?? action.createdAt,
  ttlMs: null,
  pollIntervalMs: TASK_POLL_MS,
  ...(action.status === 'waiting_approval' && { statusMessage: 'People must decide' }),
});
