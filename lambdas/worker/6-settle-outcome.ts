import { findOperation } from '../connectors/registry.ts';
import { type RecordedError, recordedError } from '../run/errors.ts';
import { later, QUARANTINE_MS } from '../run/lease.ts';
import { type IntentReceipt, together } from '../run/receipt.ts';
import { attemptsOf } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, PROBES_MAX, scheduleRetry, settleReceipt, succeed } from '../run-changes/step-endings.ts';
import { receiptOf } from '../run-changes/step-receipt.ts';
import { startReadySteps } from './2-start-ready-steps.ts';
import type { StepOutcome } from './executor/in-process-executor.ts';
import type { ClaimedStep, FollowUp, Worker } from './worker.ts';

/** A worker that has lost its lease settles nothing. */
type SettledOutcome = Exclude<StepOutcome, { kind: 'lease_lost' }>;
type Failure = Exclude<SettledOutcome, { kind: 'done' }>;

/** The commit that follows a performed step: its receipt's outcome, the step's, and whatever comes next. */
export async function settleOutcome(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  held: ClaimedStep,
  outcome: SettledOutcome,
): Promise<FollowUp> {
  const { step, receipt } = held;
  if (outcome.kind === 'done') {
    const { result } = outcome;
    const cost = together(receipt.spentBefore, result.cost);
    settleReceipt(draft, { ...receipt, ...result, ...(cost && { cost }), outcome: 'succeeded', settledAt: draft.at });
    if (result.incomplete === undefined) succeed(draft, step, { output: result.output, receiptKey: receipt.key });
    else fail(draft, step, recordedError('TARGET_REFUSED', result.incomplete), { ...step, wrote: true });
  } else {
    settleFailure(worker, state, draft, held, outcome);
  }
  if (step.undoes !== undefined) await settleUndoneReceipt(worker, draft, step.undoes, receipt.key);
  return startReadySteps(worker, state, draft);
}

/**
 * The undone write's receipt says so, which frees its key: the same write may be asked for, and made, again. If it was
 * certainly not undone others may rest on it again; if nobody knows, they may not.
 */
async function settleUndoneReceipt(worker: Worker, draft: RunDraft, index: number, undoKey: string): Promise<void> {
  const undone = draft.steps.get(index);
  const receipt = undone && (await receiptOf(worker, draft, undone));
  if (!undone || receipt?.outcome !== 'succeeded' || receipt.runId !== draft.run.runId) return;
  const { undoBegunAt: _begun, ...made } = receipt;
  const undo = draft.receipt(undoKey);
  if (undo?.outcome === 'failed') draft.putReceipt(made, 'ours');
  if (undo?.outcome !== 'succeeded' || undo.incomplete !== undefined) return;
  const { key } = receipt;
  draft.putReceipt({ ...made, outcome: 'reversed', reversedAt: draft.at, reversedBy: undoKey }, 'ours').record({
    type: 'write.reversed',
    step: undone.id,
    receiptKey: key,
    reversedBy: undoKey,
  });
  if (undone.status !== 'succeeded') return;
  const { output, completedAt, durationMs } = undone;
  draft.put({ ...factsOf(undone, draft.at), status: 'rolled_back', output, receiptKey: key, completedAt, durationMs });
}

/** Refused or unknown: tried again while attempts remain; an unknown outcome only after its quarantine. */
function settleFailure(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, receipt }: ClaimedStep,
  outcome: Failure,
): void {
  const unknown = outcome.kind === 'unknown';
  settleReceipt(draft, failedReceipt(draft, receipt, outcome));
  const definition = state.workflow.steps[step.index];
  const attemptsMax = attemptsOf(findOperation(step.tool), definition) + (unknown ? PROBES_MAX : 0);
  const mayRetry = outcome.retryable && step.attempt < attemptsMax && !(unknown && receipt.effect === 'opaque');
  if (!mayRetry) {
    fail(draft, step, finalError(step.attempt, outcome), step);
    return;
  }
  scheduleRetry(worker, draft, step, outcome.error, {
    ...(outcome.kind === 'refused' && { retryAfterMs: outcome.retryAfterMs }),
    delaysMs: definition?.retry?.backoffSeconds?.map((seconds) => seconds * 1000),
    ...(unknown && { notBefore: later(receipt.intentAt, QUARANTINE_MS) }),
  });
}

function failedReceipt(draft: RunDraft, receipt: IntentReceipt, outcome: Failure) {
  const { before: _before, ...facts } = receipt;
  const settled = { ...facts, settledAt: draft.at, error: outcome.error };
  if (outcome.kind === 'unknown') {
    return { ...settled, outcome: 'unknown' as const, ...(outcome.before && { before: outcome.before }) };
  }
  const cost = together(receipt.spentBefore, outcome.cost);
  const { neverSent } = outcome;
  return { ...settled, outcome: 'failed' as const, ...(cost && { cost }), ...(neverSent && { neverSent }) };
}

/** An unknown outcome stays one, however often it was tried: it is what brings a human in. */
function finalError(attempt: number, { kind, error, retryable }: Failure): RecordedError {
  if (kind === 'unknown' || !retryable) return error;
  return recordedError('RETRIES_EXHAUSTED', `${error.message}; gave up after ${attempt} attempts`);
}
