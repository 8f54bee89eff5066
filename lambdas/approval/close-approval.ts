import type { RunDraft } from '../run/run-draft.ts';
import type { Approval, ApprovalStatus, OpenApprovalStatus } from './approval.ts';

export function closeApproval(
  draft: RunDraft,
  approval: Approval,
  ending: Partial<Approval> & { status: Exclude<ApprovalStatus, OpenApprovalStatus> },
): Approval {
  return draft.changeApproval(approval, { ...ending, decidedAt: draft.at });
}
