import { withinDeadline } from '../connectors/attempt-deadline.ts';
import type { Operation } from '../connectors/connector.ts';
import { TargetRefused } from '../connectors/target-errors.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Worker } from '../worker/worker.ts';
import { accessFor } from './access.ts';
import { AttemptTime } from './attempt-time.ts';

export interface Unreadable {
  error: RecordedError;
  retryable: boolean;
  retryAfterMs?: number;
}

/** What is there before a write: for people to see, and to compare with. */
export async function look(
  worker: Worker,
  tenant: string,
  operation: Operation,
  input: unknown,
): Promise<{ before?: TouchedState } | Unreadable> {
  try {
    const access = await accessFor(worker, tenant, operation);
    const read = async () => operation.before?.(operation.parse(input), access);
    return { before: await withinDeadline(new AttemptTime(worker), read) };
  } catch (error) {
    worker.log.warn('what a write would change could not be read', { tool: operation.tool, error });
    const known = error instanceof CountersignError ? error : undefined;
    const why = `what ${operation.tool} would change could not be read: ${known?.message ?? 'the connector failed'}`;
    return {
      error: recordedError('TARGET_REFUSED', why),
      retryable: error instanceof TargetRefused ? error.retryable : known === undefined,
      ...(error instanceof TargetRefused && { retryAfterMs: error.retryAfterMs }),
    };
  }
}
