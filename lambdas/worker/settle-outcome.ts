import { type RecordedError, recordedError } from '../run/errors.ts';
import { later, QUARANTINE_MS } from '../run/lease.ts';
import { DEFAULT_ATTEMPTS } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf } from '../run/step.ts';
import { carryOn } from './carry-on.ts';
import type { StepOutcome } from './perform-step.ts';
import { fail, scheduleRetry, settleReceipt, succeed } from './step-endings.ts';
import type { FollowUp, HeldReceipts, HeldStep, RunState, Worker } from './worker.ts';

/** The commit that follows a performed step: its receipt's outcome, the step's, and whatever comes next. */
export async function settleOutcome(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  held: HeldStep,
  outcome: StepOutcome,
  known: HeldReceipts,
): Promise<FollowUp> {
  const { step, receipt } = held;
  if (outcome.kind === 'done') {
    settleReceipt(draft, { ...receipt, ...outcome.result, outcome: 'succeeded', settledAt: draft.at });
    succeed(draft, step, { output: outcome.result.output, receiptKey: receipt.key });
    if (step.undoes !== undefined) await markReversed(worker, draft, step.undoes, receipt.key);
  } else {
    settleFailure(worker, state, draft, held, outcome);
  }
  return carryOn(worker, state, draft, known);
}

/** The undone write's receipt says so, which frees its key: the same write may be asked for, and made, again. */
async function markReversed(worker: Worker, draft: RunDraft, index: number, reversedBy: string): Promise<void> {
  const undone = draft.steps.get(index);
  if (undone?.status !== 'succeeded' || undone.receiptKey === undefined) return;
  const { receiptKey, output, completedAt } = undone;
  const [receipt] = await worker.runs.receipts(draft.run.tenant, [receiptKey]);
  if (receipt?.outcome !== 'succeeded' || receipt.runId !== draft.run.runId) return;
  draft
    .put({ ...factsOf(undone, draft.at), status: 'rolled_back', output, receiptKey, completedAt })
    .putReceipt({ ...receipt, outcome: 'reversed', reversedAt: draft.at, reversedBy }, 'ours')
    .record({ type: 'write.reversed', step: undone.id, receiptKey, reversedBy });
}

/** Refused or unknown: tried again while attempts remain; an unknown outcome only after its quarantine. */
function settleFailure(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, receipt }: HeldStep,
  outcome: Exclude<StepOutcome, { kind: 'done' }>,
): void {
  const unknown = outcome.kind === 'unknown';
  const settled = { ...receipt, settledAt: draft.at, error: outcome.error };
  settleReceipt(draft, unknown ? { ...settled, outcome: 'unknown' } : { ...settled, outcome: 'failed' });
  const retry = state.workflow.steps[step.index]?.retry;
  const attemptsMax = retry?.attempts ?? DEFAULT_ATTEMPTS;
  const mayRetry = outcome.retryable && step.attempt < attemptsMax && !(unknown && receipt.effect === 'opaque');
  if (!mayRetry) {
    fail(draft, step, finalError(step.attempt, outcome), step);
    return;
  }
  scheduleRetry(worker, draft, step, outcome.error, {
    ...(outcome.kind === 'refused' && { retryAfterMs: outcome.retryAfterMs }),
    ladderMs: retry?.backoffSeconds?.map((seconds) => seconds * 1000),
    ...(unknown && { notBefore: later(receipt.intentAt, QUARANTINE_MS) }),
  });
}

/** An unknown outcome stays one, however often it was tried: it is what brings a human in. */
function finalError(
  attempt: number,
  { kind, error, retryable }: Exclude<StepOutcome, { kind: 'done' }>,
): RecordedError {
  if (kind === 'unknown' || !retryable) return error;
  return recordedError('RETRIES_EXHAUSTED', `${error.message}; gave up after ${attempt} attempts`);
}
