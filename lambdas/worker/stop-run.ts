import { recordedError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { RunStore } from '../run/run-store.ts';
import { factsOf, isFinished, receiptKeyOf } from '../run/step.ts';

export const STOPPED_IN_FLIGHT = recordedError(
  'OUTCOME_UNKNOWN',
  'the run was stopped while nobody knew whether this write had reached its target',
);

/** An ended run makes no later call: whatever of it was still open is closed with it. */
export async function closeOpenSteps(runs: Pick<RunStore, 'approval'>, draft: RunDraft): Promise<void> {
  const { tenant, runId } = draft.run;
  for (const step of [...draft.steps.values()]) {
    if (isFinished(step)) continue;
    draft
      .put({ ...factsOf(step, draft.at), receiptKey: receiptKeyOf(step), status: 'canceled', completedAt: draft.at })
      .record({ type: 'step.canceled', step: step.id, index: step.index });
    if (step.status !== 'waiting_approval') continue;
    const approval = await runs.approval(tenant, runId, step.approvalId);
    if (approval?.status !== 'requested' && approval?.status !== 'notified') continue;
    draft
      .putApproval({ ...approval, status: 'canceled' }, approval.status)
      .record({ type: 'approval.canceled', step: step.id, approvalId: step.approvalId });
  }
}
