import type { TenantPolicies } from './policy.ts';
import { InvalidPolicies, type PolicyEngines, type PolicyRule, prepare } from './policy-engine.ts';

/**
 * Why the new policies may allow what the published ones do not, as sentences. None if they are the same, or only add
 * forbids: a forbid always wins, so with more of them nothing more is allowed.
 */
export async function loosenings(
  engines: PolicyEngines,
  published: TenantPolicies,
  next: TenantPolicies,
): Promise<string[]> {
  const after = await prepare(engines, next);
  const before = await prepare(engines, published).catch((error: unknown) => {
    if (error instanceof InvalidPolicies) return undefined;
    throw error;
  });
  if (!before) return ['replaces invalid policies, with which nothing can be compared'];
  if (before.hash === after.hash) return [];
  if (!before.rules || !after.rules) return ['adds, replaces or removes a compiled policy'];
  return differences(before.rules, after.rules);
}

function differences(before: readonly PolicyRule[], after: readonly PolicyRule[]): string[] {
  const has = (rules: readonly PolicyRule[], { content }: PolicyRule) => rules.some((each) => each.content === content);
  const gone = before.filter((rule) => !has(after, rule));
  const added = after.filter((rule) => !has(before, rule));
  const isNamed = (rules: readonly PolicyRule[], id: string) => rules.some((each) => each.id === id);
  return [
    ...gone.map(({ id, effect }) => `${isNamed(added, id) ? 'changes' : 'removes'} the ${effect} ${id}`),
    ...added
      .filter(({ id, effect }) => effect === 'permit' && !isNamed(gone, id))
      .map(({ id }) => `adds the permit ${id}`),
  ];
}
