import { promised } from '../outbox/outbox.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Approval, ApprovalStatus, OpenApprovalStatus } from './approval.ts';

/** An approval changes in the run's commit, which also promises that its card, and its state machine if need be, follow. */
export function changeApproval(draft: RunDraft, approval: Approval, changes: Partial<Approval>): Approval {
  const changed = draft.changeApproval(approval, changes);
  const { tenant, runId, approvalId, revision } = changed;
  draft.promise(promised({ kind: 'follow_approval', tenant, runId, approvalId, revision }, draft.at));
  return changed;
}

export function closeApproval(
  draft: RunDraft,
  approval: Approval,
  ending: Partial<Approval> & { status: Exclude<ApprovalStatus, OpenApprovalStatus> },
): Approval {
  return changeApproval(draft, approval, { ...ending, decidedAt: draft.at });
}
