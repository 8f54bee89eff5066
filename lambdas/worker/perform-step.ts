import { markOf, type Operation, type Performance } from '../connectors/connector.ts';
import { OutcomeUnknown, TargetRefused } from '../connectors/http-exchange.ts';
import { findOperation } from '../connectors/registry.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import type { WriteResult } from '../run/receipt.ts';
import type { HeldStep, Worker } from './worker.ts';

/** What became of a write. `refused`: it certainly did not happen. `unknown`: it may have. */
export type StepOutcome =
  | { kind: 'done'; result: WriteResult }
  | { kind: 'refused'; error: RecordedError; retryable: boolean; retryAfterMs?: number }
  | { kind: 'unknown'; error: RecordedError; retryable: boolean };

export async function performStep(worker: Worker, held: HeldStep): Promise<StepOutcome> {
  const { step, receipt, unsettled, state } = held;
  const operation = findOperation(step.tool);
  if (!operation)
    return { kind: 'refused', error: recordedError('WORKFLOW_INVALID', `no tool ${step.tool}`), retryable: false };
  let outcome: StepOutcome;
  try {
    const performance: Performance = {
      access: await worker.connections.open(state.run.tenant, operation.connection),
      mark: markOf(state.run.tenant, receipt.key),
      intentAt: receipt.intentAt,
      firstAttempt: !unsettled,
    };
    outcome = { kind: 'done', result: await recoverOrPerform(operation, held, performance) };
  } catch (error) {
    outcome = classify(worker, error);
  }
  // After an unknown attempt even a clear "no" settles nothing: the earlier request may have been the one that worked.
  if (unsettled && outcome.kind === 'refused') return { ...outcome, kind: 'unknown' };
  return outcome;
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
