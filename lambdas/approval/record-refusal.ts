import { CountersignError, type ErrorCode } from '../run/errors.ts';
import type { RefusedBecause } from '../run/events/approval-events.ts';
import { changeRun } from '../run-changes/change-run.ts';
import type { RunChanger } from '../run-changes/run-changer.ts';
import type { Deciding } from './check-decision.ts';

/** Bounds the row of the run and its chain: people can try as often as they like. */
const RECORDED_REFUSALS_MAX = 50;

const BECAUSE: Partial<Record<ErrorCode, RefusedBecause>> = {
  APPROVAL_SELF: 'maker',
  APPROVAL_FORBIDDEN: 'not_eligible',
  APPROVAL_STALE: 'stale',
};

export const isRecordedRefusal = (code: ErrorCode): boolean => BECAUSE[code] !== undefined;

/**
 * Records that a person tried to decide and was refused, once for each person and reason, so that evidence shows the
 * attempt. The refusal itself does not depend on it: if the run has changed or ended meanwhile, nothing is recorded.
 */
export async function recordRefusal(
  changer: RunChanger,
  target: { tenant: string; runId: string },
  { approvalId, person, via, decision }: Deciding,
  code: ErrorCode,
): Promise<void> {
  const because = BECAUSE[code];
  if (because === undefined) return;
  const key = `${approvalId} ${person} ${because}`;
  try {
    await changeRun(changer, target, async ({ run: { refusals = [] } }, draft) => {
      const approval = await changer.runs.approval(target.tenant, target.runId, approvalId);
      if (!approval || refusals.includes(key) || refusals.length >= RECORDED_REFUSALS_MAX) return undefined;
      draft.note({ refusals: [...refusals, key] }).record({
        type: 'approval.refused',
        step: approval.stepId,
        approvalId,
        person,
        via,
        decision: decision.kind,
        because,
      });
      return {};
    });
  } catch (error) {
    if (error instanceof CountersignError && error.code === 'RUN_TERMINAL_STATE') return;
    changer.log.warn('a refused decision could not be recorded', { ...target, approvalId, person, code, error });
  }
}
