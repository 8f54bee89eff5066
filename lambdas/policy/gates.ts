import type { GateReason } from '../approval/approval.ts';
import { findOperation } from '../connectors/registry.ts';
import type { Step, Steps } from '../run/step.ts';
import type { ValidationMode, Workflow } from '../workflow/workflow.ts';
import type { ApprovalRequirement, PolicyDecision, ProposedAction } from './policy.ts';
import { stricter } from './requirement.ts';

/** Whatever policy says, nobody alone lets a write happen that hits much or cannot be made good. */
const ALWAYS_TWO: ApprovalRequirement = { tier: 'high', quorum: 2, groups: [] };

export type Gate =
  | { kind: 'open' }
  /** Only the validation mode asked, and the run is sure enough of itself. */
  | { kind: 'auto_approved'; confidence: number; threshold: number }
  | { kind: 'closed'; asks: GateReason; requirement: ApprovalRequirement };

interface Judged {
  decision: Exclude<PolicyDecision, { verdict: 'deny' }>;
  action: ProposedAction;
  workflow: Workflow;
  steps: Steps;
  index: number;
  /** 0 to 1, where the step says how sure the run is. */
  confidence?: number;
}

/** Whether people must agree first. The mode and the rule of two add gates to what policy decides; nothing removes one. */
export function gateFor(judged: Judged): Gate {
  const { decision, action } = judged;
  const alwaysTwo = action.effect !== 'read' && (action.blastRadius === 'high' || action.destructive);
  const asked: { asks: GateReason; requirement: ApprovalRequirement }[] = [];
  if (decision.verdict === 'needs_approval') asked.push({ asks: 'policy', requirement: decision.requirement });
  if (alwaysTwo) asked.push({ asks: 'always_two', requirement: ALWAYS_TWO });
  const [first] = asked;
  if (first)
    return { kind: 'closed', asks: first.asks, requirement: asked.map((each) => each.requirement).reduce(stricter) };
  return action.undo || action.effect === 'read' ? { kind: 'open' } : modeGate(judged);
}

function modeGate({ action, workflow, steps, index, confidence }: Judged): Gate {
  const step = workflow.steps[index];
  const mode = workflow.validation?.mode ?? (action.environment === 'prod' ? 'per_step' : undefined);
  if (!modeAsks(mode, workflow, steps, index)) return { kind: 'open' };
  const threshold = workflow.validation?.autoApproveThreshold;
  const sure = threshold !== undefined && confidence !== undefined && confidence >= threshold;
  if (sure && !step?.critical && action.blastRadius !== 'high' && action.environment !== 'prod') {
    return { kind: 'auto_approved', confidence, threshold };
  }
  return { kind: 'closed', asks: 'mode', requirement: { tier: action.risk, quorum: 1, groups: [] } };
}

function modeAsks(mode: ValidationMode | undefined, workflow: Workflow, steps: Steps, index: number): boolean {
  const phaseOf = (other: number) => workflow.steps[other]?.phase;
  switch (mode) {
    case 'per_step':
    case 'critical_only':
      // Of the latter, only what is critical, or not sure enough of itself, will wait.
      return true;
    case 'per_phase':
      return !writes(workflow).some((other) => phaseOf(other) === phaseOf(index) && passedItsGate(steps.get(other)));
    case 'final_only':
      return writes(workflow).at(-1) === index;
    case undefined:
      return false;
  }
}

const passedItsGate = (step: Step | undefined) =>
  step?.governed?.approvalId !== undefined && step.status !== 'waiting_approval';

const writes = (workflow: Workflow): number[] =>
  workflow.steps.flatMap(({ tool }, index) => {
    const effect = findOperation(tool)?.effect;
    return effect === undefined || effect === 'read' ? [] : [index];
  });
