import * as z from 'zod';
import { RISKS, type Risk } from '../connectors/connector.ts';
import type { ApprovalRequirement } from './policy.ts';

export const atLeast = (a: Risk, b: Risk): boolean => RISKS.indexOf(a) >= RISKS.indexOf(b);

export const higher = (a: Risk, b: Risk = 'low'): Risk => (atLeast(a, b) ? a : b);

/** Groups as people write them: `[a, b]` is somebody of a or b; `[[a, b], [c]]` somebody of a or b who is also of c. */
export const GroupSets = z.union([
  z.array(z.array(z.string().min(1)).min(1)),
  z.array(z.string().min(1)).transform((groups) => [groups]),
]);

/** What meets both: the highest tier, the most people, and members of every set that one of them names. */
export function stricter(a: ApprovalRequirement, b: ApprovalRequirement): ApprovalRequirement {
  return {
    tier: higher(a.tier, b.tier),
    quorum: Math.max(a.quorum, b.quorum),
    groups: groupsInOrder([...a.groups, ...b.groups]),
    ...(a.operators && b.operators && { operators: true as const }),
  };
}

/** Whether meeting `a` means that `b` is met too. */
export function demandsAtLeast(a: ApprovalRequirement, b: ApprovalRequirement): boolean {
  const isMet = (set: readonly string[]) => a.groups.some((narrower) => narrower.every((group) => set.includes(group)));
  const ofWhom = a.operators === undefined || b.operators === true;
  return ofWhom && atLeast(a.tier, b.tier) && a.quorum >= b.quorum && b.groups.every(isMet);
}

/** The same sets, each once, in the one order that makes equal requirements equal. */
export function groupsInOrder(groups: readonly (readonly string[])[]): string[][] {
  const bySpelling = new Map(groups.map((set) => [...new Set(set)].sort()).map((set) => [JSON.stringify(set), set]));
  return [...bySpelling.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, set]) => set);
}
