import { findOperation } from '../connectors/registry.ts';
import type { Approval, GateReason } from '../run/approval.ts';
import { inOrder, stepsBefore } from '../workflow/step-order.ts';
import type { ValidationMode, Workflow } from '../workflow/workflow.ts';
import { atLeast, stricter } from './approval-requirement.ts';
import type { ApprovalRequirement, PolicyDecision, ProposedAction } from './policy.ts';

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
  index: number;
  /** What the step's expression says of how sure the run is: 0 to 1, anything else says nothing. */
  confidence?: unknown;
  /** A request for this very write has left before. */
  retry?: boolean;
  /** The approval this step was stopped for before, if it no longer holds. */
  askedBefore?: Pick<Approval, 'asks' | 'requirement'>;
}

/**
 * Whether people must agree first. The mode and the rule of two add gates to what policy decides, and a write that people
 * were asked about once is asked about ever after, no less strictly; nothing removes a gate.
 */
export function gateFor(judged: Judged): Gate {
  const { decision, action, askedBefore } = judged;
  const alwaysTwo = action.effect !== 'read' && (action.blastRadius === 'high' || action.destructive);
  const asked: Pick<Approval, 'asks' | 'requirement'>[] = [];
  if (judged.retry && retryAsks(action)) asked.push({ asks: 'retry', requirement: forRetry(action) });
  if (decision.verdict === 'needs_approval') asked.push({ asks: 'policy', requirement: decision.requirement });
  if (alwaysTwo) asked.push({ asks: 'always_two', requirement: ALWAYS_TWO });
  // What an undo reaches is what people have agreed to.
  if (action.derived && !action.undo)
    asked.push({ asks: 'tainted', requirement: { tier: action.risk, quorum: 1, groups: [] } });
  if (askedBefore) asked.push(askedBefore);
  const [first] = asked;
  if (first)
    return { kind: 'closed', asks: first.asks, requirement: asked.map((each) => each.requirement).reduce(stricter) };
  return action.undo || action.effect === 'read' ? { kind: 'open' } : modeGate(judged);
}

/** Source 001, 7.2: nobody repeats a write of at least this blast radius without an operator. */
export const retryAsks = ({ effect, blastRadius }: Pick<ProposedAction, 'effect' | 'blastRadius'>): boolean =>
  effect !== 'read' && atLeast(blastRadius, 'medium');

const forRetry = ({ risk }: ProposedAction): ApprovalRequirement => ({
  tier: risk,
  quorum: 1,
  groups: [],
  operators: true,
});

function modeGate({ action, workflow, index, confidence }: Judged): Gate {
  const step = workflow.steps[index];
  const mode = workflow.validation?.mode ?? (action.environment === 'prod' ? 'per_step' : undefined);
  if (!modeAsks(mode, workflow, index)) return { kind: 'open' };
  const threshold = step?.autoApproveThreshold ?? workflow.validation?.autoApproveThreshold;
  const mayPass = !step?.critical && action.blastRadius !== 'high' && action.environment !== 'prod';
  if (threshold !== undefined && mayPass && isShare(confidence) && confidence >= threshold) {
    return { kind: 'auto_approved', confidence, threshold };
  }
  return { kind: 'closed', asks: 'mode', requirement: { tier: action.risk, quorum: 1, groups: [] } };
}

const isShare = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 1;

function modeAsks(mode: ValidationMode | undefined, workflow: Workflow, index: number): boolean {
  switch (mode) {
    case 'per_step':
    // One approval covers a whole phase: those that it covers pass by it, see approval/find-covering-approval.ts.
    case 'per_phase':
    case 'critical_only':
      // Of the latter, only what is critical, or not sure enough of itself, will wait.
      return true;
    case 'final_only': {
      const final = finalWrite(workflow);
      return 'flaw' in final || final.index === index;
    }
    case undefined:
      return false;
  }
}

/** The write that is surely made, and after all others: where `final_only` has its gate. */
export function finalWrite(workflow: Workflow): { index: number } | { flaw: string } {
  const writes = writesOf(workflow);
  // Only what comes last in an order of the steps can come after all others in every order.
  const index = inOrder(workflow).findLast((each) => writes.includes(each));
  const before = index === undefined ? undefined : stepsBefore(workflow, index);
  if (index === undefined || !writes.every((other) => other === index || before?.has(other))) {
    return {
      flaw: 'final_only asks before the write that follows all others, and there is none; let one need them all',
    };
  }
  const { id, when } = workflow.steps[index] ?? {};
  if (when !== undefined) return { flaw: `final_only asks before "${id}", which "when" may skip; take the "when" out` };
  return { index };
}

export const writesOf = (workflow: Workflow): number[] =>
  workflow.steps.flatMap(({ tool }, index) => {
    const effect = findOperation(tool)?.effect;
    return effect === undefined || effect === 'read' ? [] : [index];
  });
