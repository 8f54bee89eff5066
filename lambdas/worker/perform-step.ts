import { markOf, type Operation, type Performance } from '../connectors/connector.ts';
import { OutcomeUnknown, TargetRefused } from '../connectors/http-exchange.ts';
import { findOperation } from '../connectors/registry.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import { LEASE_DURATION_MS, LEASE_RENEWAL_MS } from '../run/lease.ts';
import type { TouchedState, WriteResult } from '../run/receipt.ts';
import { accessFor } from './access.ts';
import type { HeldStep, Worker } from './worker.ts';

/** What became of a write. `refused`: it certainly did not happen. `unknown`: it may have. */
export type StepOutcome =
  | { kind: 'done'; result: WriteResult }
  | { kind: 'refused'; error: RecordedError; retryable: boolean; retryAfterMs?: number }
  | { kind: 'unknown'; error: RecordedError; retryable: boolean };

export async function performStep(worker: Worker, tenant: string, runId: string, held: HeldStep): Promise<StepOutcome> {
  const { step, receipt, unsettled } = held;
  const stopRenewing = worker.every(LEASE_RENEWAL_MS, () => renew(worker, tenant, runId, held));
  let outcome: StepOutcome;
  try {
    const operation = findOperation(step.tool);
    if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
    const access = await accessFor(worker, tenant, operation);
    const { openSince } = receipt;
    const performance = { access, mark: markOf(tenant, receipt.key), openSince };
    const result = unsettled
      ? await recoverOrPerform(operation, held, performance)
      : await lookAndPerform(operation, held, performance);
    outcome = { kind: 'done', result };
  } catch (error) {
    outcome = classify(worker, error);
  } finally {
    stopRenewing();
  }
  // After an unknown attempt even a clear "no" settles nothing: the earlier request may have been the one that worked.
  if (unsettled && outcome.kind === 'refused') {
    return {
      kind: 'unknown',
      error: recordedError('OUTCOME_UNKNOWN', outcome.error.message),
      retryable: outcome.retryable,
    };
  }
  return outcome;
}

/** Long work keeps its lease. If it is lost all the same, the commit will say so: a renewal decides nothing. */
function renew(worker: Worker, tenant: string, runId: string, { step }: HeldStep): void {
  const expiresAt = new Date(worker.clock.now() + LEASE_DURATION_MS).toISOString();
  worker.runs.renewLease(tenant, runId, step, expiresAt).catch((error: unknown) => {
    worker.log.warn('a lease could not be renewed', { runId, step: step.id, error });
  });
}

/** What is there now is kept for the way back; if it is not what the write was meant for, nothing is written. */
async function lookAndPerform(operation: Operation, held: HeldStep, performance: Performance): Promise<WriteResult> {
  const input = operation.parse(held.step.input);
  const before = await operation.before?.(input, performance.access);
  const { expects } = held.step;
  if (expects && before && !isAs(expects, before)) throw drifted(held);
  const result = await operation.perform(input, { ...performance, ...(before && { before }) });
  return before ? { ...result, before } : result;
}

/** An earlier attempt may have worked: then what is there now is not what was there before. */
async function recoverOrPerform(operation: Operation, held: HeldStep, performance: Performance): Promise<WriteResult> {
  const input = operation.parse(held.step.input);
  const found = await operation.probe?.(input, performance);
  if (found) return found;
  const { expects } = held.step;
  const now = expects && (await operation.before?.(input, performance.access));
  if (!expects || !now) return operation.perform(input, performance);
  if (isAs(expects, now)) return operation.perform(input, { ...performance, before: now });
  const { after } = operation.propose(input, performance.access.instance);
  // It worked: made once more it changes nothing. Whatever else is there now is someone's later change.
  if (after && isAs(after, now)) return operation.perform(input, performance);
  throw drifted(held);
}

/** Whether things are as expected, as far as anything was. */
const isAs = (expected: TouchedState, now: TouchedState): boolean =>
  Object.entries(expected).every(([name, value]) => hashOf(now[name] ?? null) === hashOf(value ?? null));

const drifted = ({ receipt }: HeldStep) =>
  new CountersignError('DRIFTED', `${receipt.target} was changed by someone else; it is left as it is`);

function classify(worker: Worker, error: unknown): StepOutcome {
  if (error instanceof TargetRefused) {
    const { retryable, retryAfterMs } = error;
    return { kind: 'refused', error: recordedError(error.code, error.message), retryable, retryAfterMs };
  }
  if (error instanceof OutcomeUnknown) {
    return { kind: 'unknown', error: recordedError(error.code, error.message), retryable: true };
  }
  if (error instanceof CountersignError) {
    return { kind: 'refused', error: recordedError(error.code, error.message), retryable: false };
  }
  // A fault of our own, perhaps after the request went out: the outcome is unknown, and the log says why.
  worker.log.error('a connector failed unexpectedly', { error });
  return {
    kind: 'unknown',
    error: recordedError('OUTCOME_UNKNOWN', 'the connector failed unexpectedly'),
    retryable: true,
  };
}
