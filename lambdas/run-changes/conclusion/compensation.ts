import { isUnknownOutcome } from '../../run/errors.ts';
import type { Compensation } from '../../run/events/write-events.ts';
import type { Run } from '../../run/run.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import {
  type FailedStep,
  isFinished,
  type RetryableStep,
  receiptKeyOf,
  type Step,
  type Steps,
  type SucceededStep,
} from '../../run/step.ts';

/** The compensation log of a run: for each write, whether it was undone, and if not, why. */

export type WrittenStep = (SucceededStep | (FailedStep & ({ wrote: true } | { mayHaveWritten: true }))) & {
  receiptKey: string;
};

/** A write that an earlier step of the run had already made belongs to that step. */
const hasWritten = (step: Step): step is WrittenStep =>
  ((step.status === 'succeeded' && step.madeByStep === undefined) ||
    (step.status === 'failed_terminal' && (step.wrote === true || step.mayHaveWritten === true))) &&
  step.receiptKey !== undefined;

/** The run whose writes this run undoes: itself, or the ended run that it rolls back. */
export const writerOf = ({ runId, rollbackOf }: Run): string => rollbackOf?.runId ?? runId;

/** A write that a rollback would have to undo. */
export const isUndoable = (step: Step): step is WrittenStep =>
  hasWritten(step) && step.undoes === undefined && step.governed?.request.action.effect !== 'read';

/** The newest write that has no entry in the compensation log. */
export function newestWritten({ run, steps }: RunDraft): WrittenStep | undefined {
  const logged = new Set(run.compensation?.map(({ step }) => step));
  const written = [...steps.values()].filter((step): step is WrittenStep => isUndoable(step) && !logged.has(step.id));
  const later = (a: WrittenStep, b: WrittenStep) =>
    a.completedAt > b.completedAt || (a.completedAt === b.completedAt && a.index > b.index);
  return written.reduce<WrittenStep | undefined>(
    (newest, step) => (newest && later(newest, step) ? newest : step),
    undefined,
  );
}

export const hasWritesToUndo = (draft: RunDraft): boolean => newestWritten(draft) !== undefined;

export const undoUnderWay = (steps: Steps): boolean =>
  [...steps.values()].some((step) => step.undoes !== undefined && !isFinished(step));

/** A write that was sent and whose outcome is unknown. A read changes nothing, so there is nothing to undo. */
export const mayHaveBeenMade = (step: Step): step is RetryableStep | FailedStep =>
  (step.status === 'failed_retryable' || step.status === 'failed_terminal') &&
  step.leaseVersion > 0 &&
  isUnknownOutcome(step.error.code) &&
  step.governed?.request.action.effect !== 'read';

/**
 * Writes and undos that will not be probed again, and whose outcome is unknown, are logged as unknown. A rollback leaves
 * out the lost commands that it undoes.
 */
export function recordUnknownWrites(draft: RunDraft, { undone }: { undone: boolean }): void {
  for (const step of [...draft.steps.values()].filter(mayHaveBeenMade)) {
    if (undone && isUndoable(step)) continue;
    const written = step.undoes === undefined ? step : draft.steps.get(step.undoes);
    if (!written || draft.run.compensation?.some((logged) => logged.step === written.id)) continue;
    recordCompensation(draft, written, { outcome: 'unknown', reason: step.error.message });
  }
}

/** A run that was stopped leaves its remaining writes in place. */
export function recordRemainingWrites(draft: RunDraft): void {
  for (let next = newestWritten(draft); next; next = newestWritten(draft)) {
    recordCompensation(draft, next, { outcome: 'kept' });
  }
}

/** Logs the outcome of each undo that has ended. */
export function recordEndedUndos(draft: RunDraft): void {
  for (const undo of [...draft.steps.values()]) {
    const undone = undo.undoes === undefined ? undefined : draft.steps.get(undo.undoes);
    if (!undone || !isFinished(undo) || draft.run.compensation?.some(({ step }) => step === undone.id)) continue;
    if (!hasWritten(undone) && undone.status !== 'rolled_back') continue;
    recordCompensation(draft, undone, outcomeOf(undo));
  }
}

function outcomeOf(undo: Step): Pick<Compensation, 'outcome' | 'reason'> {
  if (undo.status === 'succeeded') return { outcome: 'reversed' };
  if (undo.status !== 'failed_terminal') return { outcome: 'kept' };
  const { code, message: reason } = undo.error;
  if (code === 'DRIFTED') return { outcome: 'drifted', reason };
  return { outcome: isUnknownOutcome(code) ? 'unknown' : 'refused', reason };
}

export function recordCompensation(
  draft: RunDraft,
  step: Step,
  { outcome, reason }: Pick<Compensation, 'outcome' | 'reason'>,
): void {
  const receiptKey = receiptKeyOf(step) ?? '';
  const entry: Compensation = { step: step.id, receiptKey, outcome, ...(reason !== undefined && { reason }) };
  draft
    .note({ compensation: [...(draft.run.compensation ?? []), entry] })
    .record({ type: 'write.compensated', ...entry });
}
