import { isDeepStrictEqual } from 'node:util';
import type { Governed } from '../run/step.ts';
import { demandsAtLeast, groupsInOrder } from './approval-requirement.ts';
import type { ApprovalRequirement, Policy, PolicyDecision } from './policy.ts';

/** What policy once said about a step of a run. */
export interface RecordedDecision {
  runId: string;
  step: string;
  governed: Governed;
}

export type Outcome = { verdict: 'allow' | 'deny' } | { verdict: 'needs_approval'; requirement: ApprovalRequirement };

/** A recorded decision that other policies would have made otherwise. */
export interface Flip {
  runId: string;
  step: string;
  tool: string;
  target: string;
  from: Outcome;
  to: Outcome;
  /** Less stands in the way than before: what was denied may happen, or people need not agree who had to. */
  loosens: boolean;
  /** Why the other policies say so. */
  reasons: string[];
}

/** Asks policies about what was decided before; every decision that would be another one is listed. */
export async function replay(recorded: readonly RecordedDecision[], policy: Policy): Promise<Flip[]> {
  const flips: Flip[] = [];
  for (const { runId, step, governed } of recorded) {
    const { request, decision } = governed;
    const { tool, target } = request.action;
    const again = await policy.decide(request);
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
