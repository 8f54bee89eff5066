import { markOf, type Operation, type Performance } from '../connectors/connector.ts';
import { OutcomeUnknown, TargetRefused } from '../connectors/http-exchange.ts';
import { findOperation } from '../connectors/registry.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import { LEASE_DURATION_MS, LEASE_RENEWAL_MS } from '../run/lease.ts';
import type { WriteResult } from '../run/receipt.ts';
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
    const performance: Performance = {
      access: await worker.connections.open(tenant, operation.connection),
      mark: markOf(tenant, receipt.key),
      openSince: receipt.openSince,
      firstAttempt: !unsettled,
    };
    outcome = { kind: 'done', result: await recoverOrPerform(operation, held, performance) };
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

async function recoverOrPerform(operation: Operation, held: HeldStep, performance: Performance): Promise<WriteResult> {
  const input = operation.parse(held.step.input);
  if (held.unsettled && operation.probe) {
    const found = await operation.probe(input, performance);
    if (found) return found;
  }
  return operation.perform(input, performance);
}

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
