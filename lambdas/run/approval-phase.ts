import type { ProposedAction } from '../policy/policy.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import type { Approval } from './approval.ts';
import { hashOf } from './canonical-json.ts';
import type { RecordedPhase } from './events/approval-events.ts';
import type { TouchedState } from './receipt.ts';

/** A write of the same phase that an approval covers, beside the one that stopped for it. */
export interface PhaseWrite {
  stepIndex: number;
  stepId: string;
  action: ProposedAction;
  before?: TouchedState;
  after?: TouchedState;
  /** What is approved: this write with these values, and no other. */
  actionHash: string;
}

/** A write of the phase that cannot be shown yet; people are asked about it when it can. */
export interface AskedLater {
  stepId: string;
  tool: string;
  because: string;
}

/** All there is to say about the phase of a write in a workflow that asks `per_phase`. */
export interface ApprovalPhase {
  name: WorkflowStep['phase'];
  /** Of the write that stopped. */
  leadHash: string;
  writes: PhaseWrite[];
  askedLater: AskedLater[];
}

/** What people approve: the write that stopped, or all writes of its phase together. */
export function approvedTogether(leadHash: string, phase: ApprovalPhase | undefined): string {
  if (!phase) return leadHash;
  const { name, writes, askedLater } = phase;
  return hashOf({
    phase: name,
    leadHash,
    writes: writes.map(({ stepId, actionHash }) => ({ step: stepId, actionHash })),
    askedLater: askedLater.map(({ stepId }) => stepId),
  });
}

/** The hash of a step's own write in an approval, if the approval is for it. */
export function approvedHashOf(approval: Approval, stepIndex: number): string | undefined {
  if (approval.stepIndex === stepIndex) return approval.phase?.leadHash ?? approval.actionHash;
  return approval.phase?.writes.find((write) => write.stepIndex === stepIndex)?.actionHash;
}

export const recordedPhase = ({ name, leadHash, writes, askedLater }: ApprovalPhase): RecordedPhase => ({
  name,
  leadHash,
  writes: writes.map(({ stepId, stepIndex, actionHash, action: { tool, target, derived } }) => ({
    step: stepId,
    index: stepIndex,
    actionHash,
    tool,
    target,
    ...(derived && { derived }),
  })),
  askedLater: askedLater.map(({ stepId, tool }) => ({ step: stepId, tool })),
});
