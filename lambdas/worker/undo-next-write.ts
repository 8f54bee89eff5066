import { hasTime } from '../proposal/attempt-time.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { Receipt, Reversal } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { lostAgentIn, newStep, type StepFacts, UNDO_INDEX_OFFSET } from '../run/step.ts';
import {
  newestWritten,
  recordCompensation,
  recordEndedUndos,
  undoUnderWay,
  type WrittenStep,
  writerOf,
} from '../run-changes/conclusion/compensation.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail } from '../run-changes/step-endings.ts';
import { receiptOf } from '../run-changes/step-receipt.ts';
import { claimStep } from './4-claim-step.ts';
import { isReusedBy } from './reuse-identical-write.ts';
import type { ClaimedStep, Worker } from './worker.ts';

/**
 * Rolls the run back, newest write first, one at a time. Each undo is a step of its own, with policy, lease, intent and
 * receipt like any other write. A write that cannot be undone is logged with the reason and skipped.
 */
export async function undoNextWrite(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
): Promise<ClaimedStep | undefined> {
  recordEndedUndos(draft);
  if (undoUnderWay(draft.steps) || draft.run.stopRequest) return undefined;
  for (let next = newestWritten(draft); next && hasTime(worker); next = newestWritten(draft)) {
    const reversal = reversalOf(draft, await receiptOf(worker, draft, next));
    if ('irreversible' in reversal) {
      recordCompensation(draft, next, { outcome: 'irreversible', reason: reversal.irreversible });
      continue;
    }
    const claimed = await claimUndo(worker, state, draft, next, reversal);
    recordEndedUndos(draft);
    if (claimed || undoUnderWay(draft.steps)) return claimed;
  }
  return undefined;
}

function reversalOf({ run }: RunDraft, receipt: Receipt | undefined): Reversal {
  if (receipt?.runId !== writerOf(run)) {
    return { irreversible: 'another run had made the identical write, so this run does not undo it' };
  }
  const ended = receipt.outcome === 'failed' || receipt.outcome === 'unknown';
  if (ended && receipt.reversal) return receipt.reversal;
  if (receipt.outcome !== 'succeeded') return { irreversible: `its receipt says ${receipt.outcome}` };
  if (receipt.reusedBy !== undefined) return { irreversible: isReusedBy(receipt.reusedBy) };
  return receipt.reversal;
}

async function claimUndo(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  undone: WrittenStep,
  { tool, input, expects }: Extract<Reversal, { tool: string }>,
): Promise<ClaimedStep | undefined> {
  const step: StepFacts = {
    ...newStep(UNDO_INDEX_OFFSET + undone.index, { id: `undo_${undone.id}`, tool }, draft.at),
    undoes: undone.index,
    ...(expects && { expects }),
    ...lostAgentIn(undone),
  };
  try {
    return await claimStep(worker, state, draft, { step, input });
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    fail(draft, step, recordedError(error.code, error.message), { input });
    return undefined;
  }
}
