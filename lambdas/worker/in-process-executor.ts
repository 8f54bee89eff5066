import { withinDeadline } from '../connectors/attempt-deadline.ts';
import { type Access, markOf, type Operation, type WriteContext } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { OutcomeUnknown, TargetRefused } from '../connectors/target-errors.ts';
import { isoNow } from '../entry/ports.ts';
import { AttemptTime } from '../proposal/attempt-time.ts';
import { accessFor } from '../proposal/read-target.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { IN_PROCESS_LEASE, later } from '../run/lease.ts';
import { isAs, type TouchedState } from '../run/receipt.ts';
import { isOn, WRITES_ARE_OFF, WRITES_UNREADABLE } from '../run/settings/flags.ts';
import type { Dispatched, Executor } from './5-executor.ts';
import { heldBack } from './held-back.ts';
import type { ClaimedStep, Worker } from './worker.ts';

type Attempted = Exclude<Dispatched, { kind: 'dispatched' | 'unassigned' }>;

/** Performs the step at once, in this invocation. */
export const inProcessExecutor: Executor = {
  lease: IN_PROCESS_LEASE,
  dispatch: (worker, run, claimed) => performStep(worker, run, claimed),
};

/** `moreContext`: values that the operation needs in addition to its input, and that only the worker has. */
export async function performStep(
  worker: Worker,
  run: { tenant: string; runId: string },
  claimed: ClaimedStep,
  moreContext: (access: Access) => Promise<Partial<WriteContext>> = async () => ({}),
): Promise<Attempted> {
  const { step, receipt, open, traceparent } = claimed;
  const time = new AttemptTime(worker, { lease: step.lease, traceparent });
  const stopRenewing = worker.every(IN_PROCESS_LEASE.renewalMs, () => renew(worker, run, claimed));
  try {
    const operation = findOperation(step.tool);
    if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
    const access = await accessFor(worker, run.tenant, operation, step.input);
    const performance = {
      ...{ access, mark: markOf(run.tenant, receipt.key), openSince: receipt.openSince },
      ...(await moreContext(access)),
    };
    const attempt = open ? recoverOrPerform : readAndPerform;
    const performing = { ...performance, tenant: run.tenant };
    const outcome = await withinDeadline(time, () => attempt(worker, operation, claimed, performing));
    return outcome.kind === 'refused' && !open && !time.hasSentAWrite ? { ...outcome, neverSent: true } : outcome;
  } catch (error) {
    const outcome = classify(worker, error);
    return open ? stillOpen(outcome, open.before) : neverSent(outcome);
  } finally {
    stopRenewing();
  }
}

/** If a renewal fails and the lease is lost, the commit of the outcome fails; the renewal itself decides nothing. */
function renew(worker: Worker, { tenant, runId }: { tenant: string; runId: string }, { step }: ClaimedStep): void {
  const expiresAt = later(isoNow(worker.clock), IN_PROCESS_LEASE.durationMs);
  worker.runs.renewLease(tenant, runId, step, expiresAt).catch((error: unknown) => {
    worker.log.warn('a lease could not be renewed', { runId, step: step.id, error });
  });
}

/** Stores the current values for the undo. If they differ from the expected values, nothing is written. */
async function readAndPerform(
  worker: Worker,
  operation: Operation,
  claimed: ClaimedStep,
  { tenant, ...performance }: WriteContext & { tenant: string },
): Promise<Attempted> {
  const input = operation.parse(claimed.step.input);
  const before = await operation.before?.(input, performance.access);
  const { expects } = claimed.step;
  if (expects && !(before && isAs(expects, before))) throw drifted(claimed);
  const outcome = await send(worker, tenant, operation, input, { ...performance, ...(before && { before }) });
  // A read changes nothing: it is repeated without a probe.
  return operation.effect === 'read' ? neverSent(outcome) : outcome;
}

/** An earlier attempt may have worked: a write found at the target counts as made, otherwise it is sent again. */
async function recoverOrPerform(
  worker: Worker,
  operation: Operation,
  claimed: ClaimedStep,
  { tenant, ...performance }: WriteContext & { tenant: string },
): Promise<Attempted> {
  const { step, open } = claimed;
  const input = operation.parse(step.input);
  const found = await operation.probe?.(input, performance);
  if (found) return { kind: 'done', result: found };
  const now = await operation.before?.(input, performance.access);
  const { after } = operation.propose(input, performance.access.instance);
  const worked = now !== undefined && after !== undefined && isAs(after, now);
  if (open?.probeOnly && !worked) return notMade(operation, claimed, now);
  // A write that worked changes nothing when it is made again. Any other difference is a later change of someone else.
  if (step.expects && now && !worked && !isAs(step.expects, now)) throw drifted(claimed);
  const before = worked ? open?.before : now;
  const again = { ...performance, ...(open?.before && { first: open.before }) };
  return stillOpen(
    await send(worker, tenant, operation, input, { ...again, ...(before && { before }) }),
    open?.before ?? before,
  );
}

/** The write is not sent again. A missing mark, or unchanged values, prove that the earlier attempt did not make it. */
function notMade(
  operation: Operation,
  { step, receipt, open }: ClaimedStep,
  now: TouchedState | undefined,
): Exclude<Attempted, { kind: 'lease_lost' }> {
  const asBefore = now !== undefined && open?.before !== undefined && isAs(open.before, now);
  if (operation.probe || asBefore) {
    if (open?.asksFirst) {
      const message = `${receipt.target} was not changed by attempt ${step.attempt - 1}`;
      return { kind: 'refused', error: recordedError('TARGET_REFUSED', message), retryable: true };
    }
    const message = `${receipt.target} was not changed; gave up after ${step.attempt - 1} attempts`;
    return { kind: 'refused', error: recordedError('RETRIES_EXHAUSTED', message), retryable: false };
  }
  const message = `it is unknown whether ${step.tool} reached ${receipt.target}; check the target`;
  return { kind: 'unknown', error: recordedError('OUTCOME_UNKNOWN', message), retryable: false, before: open?.before };
}

async function send(
  worker: Worker,
  tenant: string,
  operation: Operation,
  input: unknown,
  performance: WriteContext,
): Promise<Attempted> {
  const { before } = performance;
  const held = operation.effect === 'read' ? undefined : await whyHeld(worker, tenant);
  if (held !== undefined) return heldBack(held);
  try {
    const result = await operation.perform(input, performance);
    return { kind: 'done', result: before ? { before, ...result } : result };
  } catch (error) {
    const outcome = classify(worker, error);
    return outcome.kind === 'unknown' ? { ...outcome, before } : outcome;
  }
}

/** The kill switch, right before the request. If it cannot be read, nothing is sent. */
async function whyHeld({ definitions, log }: Worker, tenant: string): Promise<string | undefined> {
  try {
    return isOn(await definitions.settings(tenant), 'writes.enabled') ? undefined : WRITES_ARE_OFF;
  } catch (error) {
    log.warn('the settings could not be read; nothing is sent', { tenant, error });
    return WRITES_UNREADABLE;
  }
}

const drifted = ({ receipt }: ClaimedStep) =>
  new CountersignError('DRIFTED', `someone else changed ${receipt.target}; its current values were not overwritten`);

/** The failure happened before a request that changes the target was sent. */
function neverSent(outcome: Attempted): Attempted {
  if (outcome.kind === 'refused') return { ...outcome, neverSent: true };
  if (outcome.kind !== 'unknown') return outcome;
  const error = recordedError('TARGET_REFUSED', `nothing was changed: ${outcome.error.message}`);
  return { kind: 'refused', error, retryable: outcome.retryable, neverSent: true };
}

/** After an unknown attempt a refusal settles nothing: the earlier request may have worked. */
function stillOpen(outcome: Attempted, before: TouchedState | undefined): Attempted {
  if (outcome.kind === 'done' || outcome.kind === 'lease_lost') return outcome;
  const error = recordedError('OUTCOME_UNKNOWN', outcome.error.message);
  const { heldBy } = outcome;
  return { kind: 'unknown', error, retryable: outcome.retryable, before, ...(heldBy !== undefined && { heldBy }) };
}

function classify(worker: Worker, error: unknown): Exclude<Attempted, { kind: 'done' }> {
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
  // A bug in the connector, perhaps after the request was sent: the outcome is unknown, and the log shows the error.
  worker.log.error('a connector failed unexpectedly', { error });
  return {
    kind: 'unknown',
    error: recordedError('OUTCOME_UNKNOWN', 'the connector failed unexpectedly'),
    retryable: true,
  };
}
