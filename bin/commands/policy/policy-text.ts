import { type PolicyDecision, whyOf } from '../../../lambdas/policy/policy.ts';
import type { Outcome } from '../../../lambdas/policy/replay.ts';
import { requirementInWords } from '../approvals/requirement-text.ts';

/** `needs_approval (2 people for medium risk, from sre)` */
export function outcomeInWords(outcome: Outcome): string {
  if (outcome.verdict !== 'needs_approval') return outcome.verdict;
  return `needs_approval (${requirementInWords(outcome.requirement)})`;
}

/** `allow by low-risk-writes: the write puts little at risk` */
export function decisionInWords(decision: PolicyDecision): string {
  const by = decision.policies.length > 0 ? ` by ${decision.policies.join(', ')}` : '';
  return `${outcomeInWords(decision)}${by}: ${whyOf(decision)}`;
}
