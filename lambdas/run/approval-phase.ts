import type { Names } from '../connectors/connector.ts';
import type { ProposedAction } from '../policy/policy.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import type { Approval } from './approval.ts';
import { hashOf } from './canonical-json.ts';
import type { RecordedPhase } from './events/approval-events.ts';
import type { TouchedState } from './receipt.ts';

/** Another write of the phase that an approval covers, beside the one that requested it. */
export interface PhaseWrite {
  stepIndex: number;
  stepId: string;
  action: ProposedAction;
  before?: TouchedState;
  after?: TouchedState;
  /** Names behind the values, for people. */
  names?: Names;
  /** Why the values before the write could not be read. */
  unread?: string;
  /** The approval is for this write with these values only. */
  actionHash: string;
}

/** A write of the phase that cannot be shown yet; it gets its own approval later. */
export interface AskedLater {
  stepId: string;
  tool: string;
  because: string;
}

/** The phase of a write in mode `per_phase`. */
export interface ApprovalPhase {
  name: WorkflowStep['phase'];
  /** The action hash of the write that requested the approval. */
  leadHash: string;
  writes: PhaseWrite[];
  askedLater: AskedLater[];
}

/** The hash that people approve: of the write that requested the approval, or of all writes of its phase together. */
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

/** The action hash of a step's write in an approval, if the approval covers it. */
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
