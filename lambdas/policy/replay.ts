import { isDeepStrictEqual } from 'node:util';
import type { Governed } from '../run/step.ts';
import { demandsAtLeast, groupsInOrder } from './approval-requirement.ts';
import type { ApprovalRequirement, Policy, PolicyDecision } from './policy.ts';

export interface RecordedDecision {
  runId: string;
  step: string;
  governed: Governed;
  /** When the step last changed: the time of a request that was recorded without one. */
  at: string;
}

export type Outcome = { verdict: 'allow' | 'deny' } | { verdict: 'needs_approval'; requirement: ApprovalRequirement };

/** A recorded decision that other policies would change. */
export interface Flip {
  runId: string;
  step: string;
  tool: string;
  target: string;
  from: Outcome;
  to: Outcome;
  /** A denied action would be allowed, or a weaker approval would be enough. */
  loosens: boolean;
  /** The reasons of the other policies. */
  reasons: string[];
}

/** Lists the recorded decisions that these policies would change. */
export async function replay(recorded: readonly RecordedDecision[], policy: Policy): Promise<Flip[]> {
  const flips: Flip[] = [];
  for (const { runId, step, governed, at } of recorded) {
    const { request, decision } = governed;
    const { tool, target } = request.action;
    const again = await policy.decide({ at, ...request });
    const [from, to] = [outcomeOf(decision), outcomeOf(again)];
    if (isDeepStrictEqual(from, to)) continue;
    flips.push({ runId, step, tool, target, from, to, loosens: loosens(from, to), reasons: again.reasons });
  }
  return flips;
}

const STRICTNESS: Record<Outcome['verdict'], number> = { allow: 0, needs_approval: 1, deny: 2 };

function loosens(from: Outcome, to: Outcome): boolean {
  if (from.verdict === 'needs_approval' && to.verdict === 'needs_approval') {
    return !demandsAtLeast(to.requirement, from.requirement);
  }
  return STRICTNESS[to.verdict] < STRICTNESS[from.verdict];
}

function outcomeOf(decision: PolicyDecision): Outcome {
  if (decision.verdict !== 'needs_approval') return { verdict: decision.verdict };
  const { tier, quorum, groups } = decision.requirement;
  return { verdict: 'needs_approval', requirement: { tier, quorum, groups: groupsInOrder(groups) } };
}
