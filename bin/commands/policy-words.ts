import { type PolicyDecision, whyOf } from '../../lambdas/policy/policy.ts';
import type { Outcome } from '../../lambdas/policy/replay.ts';

/** `needs_approval (medium, 2 people of sre)` */
export function outcomeInWords(outcome: Outcome): string {
  if (outcome.verdict !== 'needs_approval') return outcome.verdict;
  const { tier, quorum, groups } = outcome.requirement;
  const people = quorum === 1 ? '1 person' : `${quorum} people`;
  return `needs_approval (${tier}, ${people}${groups.length > 0 ? ` of ${groups.join(', ')}` : ''})`;
}

/** `allow by low-risk-writes: the write puts little at risk` */
export function decisionInWords(decision: PolicyDecision): string {
  const by = decision.policies.length > 0 ? ` by ${decision.policies.join(', ')}` : '';
  return `${outcomeInWords(decision)}${by}: ${whyOf(decision)}`;
}
