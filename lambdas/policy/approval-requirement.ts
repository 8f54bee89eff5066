import * as z from 'zod';
import { RISKS, type Risk } from '../connectors/connector.ts';
import type { ApprovalRequirement } from './policy.ts';

export const atLeast = (a: Risk, b: Risk): boolean => RISKS.indexOf(a) >= RISKS.indexOf(b);

export const higher = (a: Risk, b: Risk = 'low'): Risk => (atLeast(a, b) ? a : b);

/** `[a, b]` is a member of a or b; `[[a, b], [c]]` is a member of a or b who is also a member of c. */
export const GroupSets = z.lazy(() =>
  z.union([z.array(z.array(z.string().min(1)).min(1)), z.array(z.string().min(1)).transform((groups) => [groups])]),
);

/** Meets both: the higher tier, the larger quorum, and all group sets. */
export function stricter(a: ApprovalRequirement, b: ApprovalRequirement): ApprovalRequirement {
  return {
    tier: higher(a.tier, b.tier),
    quorum: Math.max(a.quorum, b.quorum),
    groups: groupsInOrder([...a.groups, ...b.groups]),
    ...(a.operators && b.operators && { operators: true as const }),
  };
}

/** True if every decision that meets `a` also meets `b`. */
export function demandsAtLeast(a: ApprovalRequirement, b: ApprovalRequirement): boolean {
  const isMet = (set: readonly string[]) => a.groups.some((narrower) => narrower.every((group) => set.includes(group)));
  const sameDeciders = a.operators === undefined || b.operators === true;
  return sameDeciders && atLeast(a.tier, b.tier) && a.quorum >= b.quorum && b.groups.every(isMet);
}

/** Without duplicates and in a fixed order, so that equal requirements compare as equal. */
export function groupsInOrder(groups: readonly (readonly string[])[]): string[][] {
  const unique = new Map(groups.map((set) => [...new Set(set)].sort()).map((set) => [JSON.stringify(set), set]));
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, set]) => set);
}
