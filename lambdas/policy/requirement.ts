import type { ApprovalRequirement } from './policy.ts';
import { higher } from './proposed-action.ts';

/** The highest tier, the most people, and members of a group that one of them names. */
export function stricter(a: ApprovalRequirement, b: ApprovalRequirement): ApprovalRequirement {
  return {
    tier: higher(a.tier, b.tier),
    quorum: Math.max(a.quorum, b.quorum),
    groups: [...new Set([...a.groups, ...b.groups])].sort(),
  };
}
