import { AskedToWait } from '../proposal/asked-to-wait.ts';
import { readTime } from '../proposal/attempt-time.ts';
import { findDuplicateWrite, isReusable, type WantedWrite } from '../proposal/find-duplicate-write.ts';
import type { ProposedCall } from '../proposal/propose-call.ts';
import { callableFrom, readTarget } from '../proposal/read-target.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { Receipt, SucceededReceipt } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf, type StepFacts } from '../run/step.ts';
import { scheduleRetry, succeed } from '../run-changes/step-endings.ts';
import { receiptOf } from '../run-changes/step-receipt.ts';
import type { Worker } from './worker.ts';

/** How soon, and at least how often, a step checks again whether the identical write of another run was made. */
const CHECKS_OTHERS_AFTER_MS = { first: 30_000, last: 10 * 60_000 };

export interface WritingStep {
  step: StepFacts;
  proposed: ProposedCall;
}

export function wantedWrite(worker: Worker, draft: RunDraft, { step, proposed }: WritingStep): WantedWrite {
  const { tenant, runId } = draft.run;
  const { key, after } = proposed.proposal;
  const readBefore = async () => {
    const found = await readTarget(worker, tenant, proposed, readTime(worker, draft.run, step.index));
    if (!('why' in found)) return found.before;
    const notBefore = callableFrom(worker, found);
    if (notBefore !== undefined) throw new AskedToWait('TARGET_REFUSED', found.why, notBefore);
    return undefined;
  };
  return { tenant, key, runId, after, readBefore, at: draft.at };
}

/** Ends the step if an identical write is already made, so that nobody is asked to approve it. */
export async function reuseIdenticalWrite(worker: Worker, draft: RunDraft, writing: WritingStep): Promise<boolean> {
  const duplicate = await findDuplicateWrite(worker.runs, wantedWrite(worker, draft, writing));
  if (duplicate) reuseOrWait(worker, draft, writing, duplicate);
  return duplicate !== undefined;
}

/** From now on the other run may no longer undo the write. */
export function recordReuse(draft: RunDraft, { id }: StepFacts, held: SucceededReceipt): void {
  const { runId } = draft.run;
  if (held.runId !== runId && held.reusedBy === undefined) {
    draft.putReceipt({ ...held, reusedBy: runId }, { asRead: held });
  }
  draft.record({ type: 'write.reused', step: id, receiptKey: held.key, firstRunId: held.runId });
}

/** Another step or run has the key of this write: a finished write is reused; for an open one, the step waits. */
export function reuseOrWait(
  worker: Pick<Worker, 'random'>,
  draft: RunDraft,
  { step, proposed }: WritingStep,
  held: Receipt,
): undefined {
  const { runId } = draft.run;
  const isMade = held.outcome === 'succeeded';
  if (isReusable(held)) {
    recordReuse(draft, step, held);
    const ofOtherStep = held.runId === runId && held.stepIndex !== step.index;
    succeed(draft, nextAttempt(step, draft.at), {
      output: held.output,
      receiptKey: held.key,
      ...(ofOtherStep && { madeByStep: held.stepIndex }),
    });
    return undefined;
  }
  const doing = isMade ? 'undoing' : 'making';
  const error = recordedError('CONFLICT', `run ${held.runId} is ${doing} the identical write; waiting for its outcome`);
  // The step claims nothing yet: its lease version, its attempts and the write budget do not change.
  const waiting = { ...step, input: proposed.input, receiptKey: held.key };
  // The longer the write has been open, the less likely it is settled within the next minute.
  const openMs = Date.parse(draft.at) - Date.parse(held.intentAt);
  const { first, last } = CHECKS_OTHERS_AFTER_MS;
  scheduleRetry(worker, draft, waiting, error, { retryAfterMs: Math.min(Math.max(first, openMs / 2), last) });
}

/** Reserves a write for its undo: no run may reuse it from now on. A write that another run reuses is not undone. */
export async function reserveForUndo(worker: Worker, draft: RunDraft, index: number): Promise<void> {
  const undone = draft.steps.get(index);
  const receipt = undone && (await receiptOf(worker, draft, undone));
  if (receipt?.outcome !== 'succeeded' || receipt.undoBegunAt !== undefined) return;
  if (receipt.reusedBy !== undefined) throw new CountersignError('DRIFTED', isReusedBy(receipt.reusedBy));
  draft.putReceipt({ ...receipt, undoBegunAt: draft.at }, { asRead: receipt });
}

export const isReusedBy = (runId: string) => `run ${runId} asked for the identical write and reuses it`;

/** The facts of a step that is claimed for its next attempt. */
export function nextAttempt(step: StepFacts, at: string): StepFacts {
  const { notBefore: _passed, assigned: _earlier, ...facts } = factsOf(step, at);
  return { ...facts, leaseVersion: step.leaseVersion + 1, attempt: step.attempt + 1 };
}
