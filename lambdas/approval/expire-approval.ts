import { approvalContext, isOpen } from '../run/approval.ts';
import { recordedError } from '../run/errors.ts';
import type { By, RunDraft } from '../run/run-draft.ts';
import type { RunStore } from '../run/run-store.ts';
import type { WaitingApprovalStep } from '../run/step.ts';
import { fail } from '../run-changes/step-endings.ts';

/** Ends an approval that nobody decided in time. `expired` is neither an approval nor a rejection. */
export async function expireApproval(
  runs: Pick<RunStore, 'approval'>,
  draft: RunDraft,
  step: WaitingApprovalStep,
): Promise<void> {
  if (step.expiresAt > draft.at) return;
  const { tenant, runId } = draft.run;
  const drafted = draft.approval(step.approvalId);
  const approval = drafted ?? (await runs.approval(tenant, runId, step.approvalId));
  // Another step of the phase may have expired it in this commit.
  if (!approval || !(isOpen(approval) || drafted?.status === 'expired')) return;
  if (isOpen(approval)) {
    draft.closeApproval(approval, { status: 'expired' });
    draft.record({ type: 'approval.expired', step: approval.stepId, approvalId: approval.approvalId });
  }
  const error = recordedError('APPROVAL_EXPIRED', `nobody decided on ${step.id} before ${step.expiresAt}`);
  const by: By = {
    initiator: 'timeout',
    actor: 'worker',
    approval: approvalContext(approval, { decision: 'expired' }),
  };
  fail(draft, step, error, { input: step.input, by });
}
