import type { Outcome } from '../../lambdas/policy/replay.ts';
import { requirementText } from '../../lambdas/run/events/requirement-text.ts';

/** `approval by 2 people for high risk, from dba`. */
export function outcomeText(outcome: Outcome): string {
  if (outcome.verdict === 'needs_approval') return `approval by ${requirementText(outcome.requirement)}`;
  return outcome.verdict === 'allow' ? 'allowed' : 'denied';
}
