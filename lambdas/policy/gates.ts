import { findOperation } from '../connectors/registry.ts';
import type { Approval, GateReason } from '../run/approval.ts';
import type { ValidationMode } from '../run/validation-mode.ts';
import { modeIn } from '../workflow/requested-mode.ts';
import { inOrder, mayBeSkipped, stepsBefore } from '../workflow/step-order.ts';
import type { Workflow } from '../workflow/workflow.ts';
import { atLeast, stricter } from './approval-requirement.ts';
import type { ApprovalRequirement, PolicyDecision, ProposedAction } from './policy.ts';

/** Regardless of policy, two people must approve a destructive write or one with high blast radius. */
export const ALWAYS_TWO: ApprovalRequirement = { tier: 'high', quorum: 2, groups: [] };

export const alwaysNeedsTwo = ({ effect, blastRadius, destructive }: ProposedAction): boolean =>
  effect !== 'read' && (blastRadius === 'high' || destructive);

export type Gate =
  | { kind: 'open' }
  /** Only the validation mode required approval, and the confidence reaches the threshold. */
  | { kind: 'auto_approved'; confidence: number; threshold: number }
  | { kind: 'closed'; asks: GateReason; requirement: ApprovalRequirement };

interface GateInput {
  decision: Exclude<PolicyDecision, { verdict: 'deny' }>;
  action: ProposedAction;
  workflow: Workflow;
  index: number;
  /** The value of the step's `confidence`. Values other than 0 to 1 are ignored. */
  confidence?: unknown;
  /** A request for this write was sent before. */
  retry?: boolean;
  /** An earlier approval of this step that is no longer valid. */
  askedBefore?: Pick<Approval, 'asks' | 'requirement'>;
}

/**
 * Whether people must approve the write. The validation mode, the rule of two and `approvers` add gates to the policy decision. A write that
 * once required approval keeps that requirement. Nothing removes a gate.
 */
export function gateFor(input: GateInput): Gate {
  const { decision, action, askedBefore } = input;
  const required: Pick<Approval, 'asks' | 'requirement'>[] = [];
  if (decision.verdict === 'needs_approval') required.push({ asks: 'policy', requirement: decision.requirement });
  if (alwaysNeedsTwo(action)) required.push({ asks: 'always_two', requirement: ALWAYS_TWO });
  // The target of an undo was approved with the original write.
  if (action.derived && !action.undo)
    required.push({ asks: 'tainted', requirement: { tier: action.risk, quorum: 1, groups: [] } });
  const approvers = action.undo ? undefined : input.workflow.steps[input.index]?.approvers;
  if (approvers) required.push({ asks: 'approvers', requirement: { tier: action.risk, ...approvers } });
  if (askedBefore) required.push(askedBefore);
  const again = retryNeedsApproval(action) || (approvalIsUsedUp(action) && required.length > 0);
  if (input.retry && again) required.unshift({ asks: 'retry', requirement: retryRequirement(action) });
  const [first] = required;
  if (first)
    return { kind: 'closed', asks: first.asks, requirement: required.map((each) => each.requirement).reduce(stricter) };
  return action.undo || action.effect === 'read' ? { kind: 'open' } : modeGate(input);
}

/** Source 001, 7.2: from this blast radius on, an operator must approve a repeated write. */
export const retryNeedsApproval = ({ effect, blastRadius }: Pick<ProposedAction, 'effect' | 'blastRadius'>): boolean =>
  effect !== 'read' && atLeast(blastRadius, 'medium');

/**
 * An approval of a command allows it to run once: also a repetition with blast radius low needs another one, if the first
 * run needed one.
 */
export const approvalIsUsedUp = (action: Pick<ProposedAction, 'connector' | 'effect' | 'blastRadius'>): boolean =>
  action.connector === 'agent' || retryNeedsApproval(action);

const retryRequirement = ({ risk }: ProposedAction): ApprovalRequirement => ({
  tier: risk,
  quorum: 1,
  groups: [],
  operators: true,
});

function modeGate({ action, workflow, index, confidence }: GateInput): Gate {
  const step = workflow.steps[index];
  const mode = modeIn(workflow, action.environment);
  if (!modeRequiresApproval(mode, workflow, index)) return { kind: 'open' };
  const threshold = step?.autoApproveThreshold ?? workflow.validation?.autoApproveThreshold;
  const mayPass = !step?.critical && action.blastRadius !== 'high' && action.environment !== 'prod';
  if (threshold !== undefined && mayPass && isShare(confidence) && confidence >= threshold) {
    return { kind: 'auto_approved', confidence, threshold };
  }
  return { kind: 'closed', asks: 'mode', requirement: { tier: action.risk, quorum: 1, groups: [] } };
}

const isShare = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 1;

function modeRequiresApproval(mode: ValidationMode | undefined, workflow: Workflow, index: number): boolean {
  switch (mode) {
    case 'per_step':
    // One approval covers all writes of a phase, see approval/find-covering-approval.ts.
    case 'per_phase':
    case 'critical_only':
      // With critical_only, a step that is not critical passes if its confidence reaches the threshold.
      return true;
    case 'final_only': {
      const final = finalWrite(workflow);
      return 'problem' in final || final.index === index;
    }
    case undefined:
      return false;
  }
}

/** The gate of `final_only`: the write that always happens and comes after all others. */
export function finalWrite(workflow: Workflow): { index: number } | { problem: string } {
  const writes = writesOf(workflow);
  // Only the last write of some valid order can be last in all orders.
  const index = inOrder(workflow).findLast((each) => writes.includes(each));
  const before = index === undefined ? undefined : stepsBefore(workflow, index);
  if (index === undefined || !writes.every((other) => other === index || before?.has(other))) {
    return {
      problem:
        'final_only requires one write that comes after all others; add "needs" so that one write needs all others',
    };
  }
  const { id, scope } = workflow.steps[index] ?? {};
  if (mayBeSkipped(workflow, index)) {
    const by = scope?.item ? 'forEach' : 'when';
    return { problem: `final_only requires approval before "${id}", but "${by}" may skip that step; remove "${by}"` };
  }
  return { index };
}

export const writesOf = (workflow: Workflow): number[] =>
  workflow.steps.flatMap(({ tool }, index) => {
    const effect = findOperation(tool)?.effect;
    return effect === undefined || effect === 'read' ? [] : [index];
  });
