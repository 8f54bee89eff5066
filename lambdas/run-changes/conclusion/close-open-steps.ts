import { isOpen } from '../../run/approval.ts';
import { recordedError } from '../../run/errors.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { RunStore } from '../../run/run-store.ts';
import { endedAt, factsOf, isFinished, receiptKeyOf } from '../../run/step.ts';

export const STOPPED_IN_FLIGHT = recordedError(
  'OUTCOME_UNKNOWN',
  'the run was stopped while it was unknown whether this write had reached its target',
);

/** Closes every open step and its approval. The run ends or rolls back, so it makes none of their calls. */
export async function closeOpenSteps(runs: Pick<RunStore, 'approval'>, draft: RunDraft): Promise<void> {
  const { tenant, runId } = draft.run;
  for (const step of [...draft.steps.values()]) {
    if (isFinished(step)) continue;
    draft
      .put({
        ...factsOf(step, draft.at),
        receiptKey: receiptKeyOf(step),
        status: 'canceled',
        ...endedAt(step, draft.at),
      })
      .record({ type: 'step.canceled', step: step.id, index: step.index });
    if (step.status !== 'waiting_approval') continue;
    const approval = draft.approval(step.approvalId) ?? (await runs.approval(tenant, runId, step.approvalId));
    if (!approval || !isOpen(approval)) continue;
    draft.closeApproval(approval, { status: 'canceled' });
    draft.record({ type: 'approval.canceled', step: step.id, approvalId: step.approvalId });
  }
}
