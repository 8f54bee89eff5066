import { CountersignError, recordedError } from '../run/errors.ts';
import type { Receipt, Reversal } from '../run/receipt.ts';
import type { Compensation } from '../run/run.ts';
import type { RunDraft } from '../run/run-draft.ts';
import {
  type FailedStep,
  isFinished,
  type RetryableStep,
  receiptKeyOf,
  STEP_SCHEMA_VERSION,
  type Step,
  type StepFacts,
  type Steps,
  type SucceededStep,
  UNDO_INDEX_OFFSET,
} from '../run/step.ts';
import { hasTime } from './attempt-time.ts';
import { claimStep } from './claim-step.ts';
import { receiptOf, restsOnIt } from './rest-on-write.ts';
import { fail } from './step-endings.ts';
import type { HeldStep, RunState, Worker } from './worker.ts';

type Written = (SucceededStep | (FailedStep & { wrote: true })) & { receiptKey: string };

/**
 * Takes back what the run wrote, newest first, one at a time. Each undo is a step of its own behind the workflow's: with
 * policy, lease, intent and receipt like any other write. What cannot be taken back is said so, and passed over.
 */
export async function takeNextBack(worker: Worker, state: RunState, draft: RunDraft): Promise<HeldStep | undefined> {
  settleUndone(draft);
  if (undoUnderWay(draft.steps) || draft.run.stopRequest) return undefined;
  for (let next = newestWritten(draft); next && hasTime(worker); next = newestWritten(draft)) {
    const reversal = reversalOf(draft, await receiptOf(worker, draft, next));
    if ('irreversible' in reversal) {
      compensated(draft, next, { outcome: 'irreversible', reason: reversal.irreversible });
      continue;
    }
    const held = await beginUndo(worker, state, draft, next, reversal);
    settleUndone(draft);
    if (held || undoUnderWay(draft.steps)) return held;
  }
  return undefined;
}

/** A run rolls back as long as one of its writes has no word in the compensation log. */
export const leftToTakeBack = (draft: RunDraft): boolean => newestWritten(draft) !== undefined;

export const undoUnderWay = (steps: Steps): boolean =>
  [...steps.values()].some((step) => step.undoes !== undefined && !isFinished(step));

/** A write that may have been made, or taken back, and will not be looked into any more: the log says that nobody knows. */
export function tellUnknown(draft: RunDraft): void {
  for (const step of [...draft.steps.values()].filter(mayHaveBeenMade)) {
    const written = step.undoes === undefined ? step : draft.steps.get(step.undoes);
    if (!written || draft.run.compensation?.some((told) => told.step === written.id)) continue;
    compensated(draft, written, { outcome: 'unknown', reason: step.error.message });
  }
}

/** Sent, with no outcome known. Of what was only read there is nothing to take back. */
export const mayHaveBeenMade = (step: Step): step is RetryableStep =>
  step.status === 'failed_retryable' &&
  step.leaseVersion > 0 &&
  step.error.code === 'OUTCOME_UNKNOWN' &&
  step.governed?.request.action.effect !== 'read';

/** What a run that is stopped leaves as it is. */
export function keepTheRest(draft: RunDraft): void {
  for (let next = newestWritten(draft); next; next = newestWritten(draft))
    compensated(draft, next, { outcome: 'kept' });
}

/** What an earlier step of the run had written already is that step's. */
const hasWritten = (step: Step): step is Written =>
  ((step.status === 'succeeded' && step.madeByStep === undefined) ||
    (step.status === 'failed_terminal' && step.wrote === true)) &&
  step.receiptKey !== undefined;

function newestWritten({ run, steps }: RunDraft): Written | undefined {
  const told = new Set(run.compensation?.map(({ step }) => step));
  const written = [...steps.values()].filter(
    (step): step is Written =>
      hasWritten(step) &&
      step.undoes === undefined &&
      step.governed?.request.action.effect !== 'read' &&
      !told.has(step.id),
  );
  const later = (a: Written, b: Written) =>
    a.completedAt > b.completedAt || (a.completedAt === b.completedAt && a.index > b.index);
  return written.reduce<Written | undefined>(
    (newest, step) => (newest && later(newest, step) ? newest : step),
    undefined,
  );
}

function reversalOf({ run }: RunDraft, receipt: Receipt | undefined): Reversal {
  if (receipt?.runId !== run.runId)
    return { irreversible: 'another run had made the identical write; it is not ours to undo' };
  if (receipt.outcome !== 'succeeded') return { irreversible: `its receipt says ${receipt.outcome}` };
  if (receipt.reusedBy !== undefined) return { irreversible: restsOnIt(receipt.reusedBy) };
  return receipt.reversal;
}

async function beginUndo(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  undone: Written,
  { tool, input, expects }: Extract<Reversal, { tool: string }>,
): Promise<HeldStep | undefined> {
  const step: StepFacts = {
    schemaVersion: STEP_SCHEMA_VERSION,
    index: UNDO_INDEX_OFFSET + undone.index,
    id: `undo_${undone.id}`,
    tool,
    leaseVersion: 0,
    attempt: 0,
    startedAt: draft.at,
    updatedAt: draft.at,
    undoes: undone.index,
    ...(expects && { expects }),
  };
  try {
    return await claimStep(worker, state, draft, { step, input });
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    fail(draft, step, recordedError(error.code, error.message), { input });
    return undefined;
  }
}

/** Writes down what became of each undo that has ended. */
function settleUndone(draft: RunDraft): void {
  for (const undo of [...draft.steps.values()]) {
    const undone = undo.undoes === undefined ? undefined : draft.steps.get(undo.undoes);
    if (!undone || !isFinished(undo) || draft.run.compensation?.some(({ step }) => step === undone.id)) continue;
    if (!hasWritten(undone) && undone.status !== 'rolled_back') continue;
    compensated(draft, undone, outcomeOf(undo));
  }
}

function outcomeOf(undo: Step): Pick<Compensation, 'outcome' | 'reason'> {
  if (undo.status === 'succeeded') return { outcome: 'reversed' };
  if (undo.status !== 'failed_terminal') return { outcome: 'kept' };
  const { code, message: reason } = undo.error;
  if (code === 'DRIFTED') return { outcome: 'drifted', reason };
  return { outcome: code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'refused', reason };
}

function compensated(draft: RunDraft, step: Step, { outcome, reason }: Pick<Compensation, 'outcome' | 'reason'>): void {
  const receiptKey = receiptKeyOf(step) ?? '';
  const entry: Compensation = { step: step.id, receiptKey, outcome, ...(reason !== undefined && { reason }) };
  draft
    .note({ compensation: [...(draft.run.compensation ?? []), entry] })
    .record({ type: 'write.compensated', ...entry });
}
