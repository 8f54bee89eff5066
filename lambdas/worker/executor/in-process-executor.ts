import { withinDeadline } from '../../connectors/attempt-deadline.ts';
import { markOf, type Operation, type WriteContext } from '../../connectors/connector.ts';
import { findOperation } from '../../connectors/registry.ts';
import { OutcomeUnknown, TargetRefused } from '../../connectors/target-errors.ts';
import { accessFor } from '../../proposal/access.ts';
import { AttemptTime } from '../../proposal/attempt-time.ts';
import { CountersignError, type RecordedError, recordedError } from '../../run/errors.ts';
import { LEASE_DURATION_MS, LEASE_RENEWAL_MS } from '../../run/lease.ts';
import { type Cost, isAs, type TouchedState, type WriteResult } from '../../run/receipt.ts';
import type { ClaimedStep, Worker } from '../worker.ts';

/** What became of a write. `refused`: it certainly did not happen. `unknown`: it may have. */
export type StepOutcome =
  | { kind: 'done'; result: WriteResult }
  | {
      kind: 'refused';
      error: RecordedError;
      retryable: boolean;
      retryAfterMs?: number;
      cost?: Cost;
      /** No request that would change something has left. */
      neverSent?: true;
    }
  | { kind: 'unknown'; error: RecordedError; retryable: boolean; before?: TouchedState }
  /** The lease ran out before the write was sent: whatever is to be done is somebody else's now. */
  | { kind: 'lease_lost'; error: RecordedError };

export async function performStep(
  worker: Worker,
  tenant: string,
  runId: string,
  held: ClaimedStep,
): Promise<StepOutcome> {
  const { step, receipt, open } = held;
  const time = new AttemptTime(worker, step.lease);
  const stopRenewing = worker.every(LEASE_RENEWAL_MS, () => renew(worker, tenant, runId, held));
  try {
    const operation = findOperation(step.tool);
    if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
    const access = await accessFor(worker, tenant, operation);
    const performance = { access, mark: markOf(tenant, receipt.key), openSince: receipt.openSince };
    const attempt = open ? recoverOrPerform : lookAndPerform;
    const outcome = await withinDeadline(time, () => attempt(worker, operation, held, performance));
    return outcome.kind === 'refused' && !open && !time.hasSentAWrite ? { ...outcome, neverSent: true } : outcome;
  } catch (error) {
    const outcome = classify(worker, error);
    return open ? stillOpen(outcome, open.before) : neverSent(outcome);
  } finally {
    stopRenewing();
  }
}

/** Long work keeps its lease. If it is lost all the same, the commit will say so: a renewal decides nothing. */
function renew(worker: Worker, tenant: string, runId: string, { step }: ClaimedStep): void {
  const expiresAt = new Date(worker.clock.now() + LEASE_DURATION_MS).toISOString();
  worker.runs.renewLease(tenant, runId, step, expiresAt).catch((error: unknown) => {
    worker.log.warn('a lease could not be renewed', { runId, step: step.id, error });
  });
}

/** What is there now is kept for the way back; if it is not what the write was meant for, nothing is written. */
async function lookAndPerform(
  worker: Worker,
  operation: Operation,
  held: ClaimedStep,
  performance: WriteContext,
): Promise<StepOutcome> {
  const input = operation.parse(held.step.input);
  const before = await operation.before?.(input, performance.access);
  const { expects } = held.step;
  if (expects && !(before && isAs(expects, before))) throw drifted(held);
  const outcome = await send(worker, operation, input, performance, before);
  // Nothing is done by reading: what got no answer is asked again, and nobody need look for its traces.
  return operation.effect === 'read' ? neverSent(outcome) : outcome;
}

/** An earlier attempt may have worked: what is found at the target is taken for it, and only what is not is sent again. */
async function recoverOrPerform(
  worker: Worker,
  operation: Operation,
  held: ClaimedStep,
  performance: WriteContext,
): Promise<StepOutcome> {
  const { step, open } = held;
  const input = operation.parse(step.input);
  const found = await operation.probe?.(input, performance);
  if (found) return { kind: 'done', result: found };
  const now = await operation.before?.(input, performance.access);
  const { after } = operation.propose(input, performance.access.instance);
  const worked = now !== undefined && after !== undefined && isAs(after, now);
  if (open?.probeOnly && !worked) return notMade(operation, held, now);
  // It worked: made once more it changes nothing. Whatever else is there now is someone's later change.
  if (step.expects && now && !worked && !isAs(step.expects, now)) throw drifted(held);
  const before = worked ? open?.before : now;
  const again = { ...performance, ...(open?.before && { first: open.before }) };
  return stillOpen(await send(worker, operation, input, again, before), open?.before ?? before);
}

/** Not to be sent again. A mark that is not there, or the state before the write, says that it never happened. */
function notMade(
  operation: Operation,
  { step, receipt, open }: ClaimedStep,
  now: TouchedState | undefined,
): StepOutcome {
  const asBefore = now !== undefined && open?.before !== undefined && isAs(open.before, now);
  if (operation.probe || asBefore) {
    if (open?.asksFirst) {
      const message = `${receipt.target} was not changed by attempt ${step.attempt - 1}`;
      return { kind: 'refused', error: recordedError('TARGET_REFUSED', message), retryable: true };
    }
    const message = `${receipt.target} was not changed; gave up after ${step.attempt - 1} attempts`;
    return { kind: 'refused', error: recordedError('RETRIES_EXHAUSTED', message), retryable: false };
  }
  const message = `nobody knows whether ${step.tool} reached ${receipt.target}; look there`;
  return { kind: 'unknown', error: recordedError('OUTCOME_UNKNOWN', message), retryable: false, before: open?.before };
}

async function send(
  worker: Worker,
  operation: Operation,
  input: unknown,
  performance: WriteContext,
  before: TouchedState | undefined,
): Promise<StepOutcome> {
  try {
    const result = await operation.perform(input, { ...performance, ...(before && { before }) });
    return { kind: 'done', result: before ? { before, ...result } : result };
  } catch (error) {
    const outcome = classify(worker, error);
    return outcome.kind === 'unknown' ? { ...outcome, before } : outcome;
  }
}

const drifted = ({ receipt }: ClaimedStep) =>
  new CountersignError('DRIFTED', `${receipt.target} was changed by someone else; it is left as it is`);

/** Whatever went wrong did so before anything could have been changed. */
function neverSent(outcome: StepOutcome): StepOutcome {
  if (outcome.kind === 'refused') return { ...outcome, neverSent: true };
  if (outcome.kind !== 'unknown') return outcome;
  const error = recordedError('TARGET_REFUSED', `nothing was changed: ${outcome.error.message}`);
  return { kind: 'refused', error, retryable: outcome.retryable, neverSent: true };
}

/** After an unknown attempt even a clear "no" settles nothing: the earlier request may have been the one that worked. */
function stillOpen(outcome: StepOutcome, before: TouchedState | undefined): StepOutcome {
  if (outcome.kind === 'done' || outcome.kind === 'lease_lost') return outcome;
  const error = recordedError('OUTCOME_UNKNOWN', outcome.error.message);
  return { kind: 'unknown', error, retryable: outcome.retryable, before };
}

function classify(worker: Worker, error: unknown): Exclude<StepOutcome, { kind: 'done' }> {
  if (error instanceof TargetRefused) {
    const { retryable, retryAfterMs, cost } = error;
    return { kind: 'refused', error: recordedError(error.code, error.message), retryable, retryAfterMs, cost };
  }
  if (error instanceof OutcomeUnknown) {
    return { kind: 'unknown', error: recordedError(error.code, error.message), retryable: true };
  }
  if (error instanceof CountersignError && error.code === 'LEASE_LOST') {
    return { kind: 'lease_lost', error: recordedError(error.code, error.message) };
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
