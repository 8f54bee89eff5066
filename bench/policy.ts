import type { PolicyRequest } from '../lambdas/policy/policy.ts';
import { wirePolicy } from '../lambdas/policy/policy.wiring.ts';

const DECISIONS = 2_000;

const request = (risk: 'low' | 'medium'): PolicyRequest => ({
  tenant: 'acme',
  automation: 'bench',
  workspace: 'default',
  workflow: { name: 'bench', version: 1 },
  source: 'github',
  writesBefore: 0,
  at: '2026-01-07T12:00:00.000Z',
  trigger: { event: 'issues.opened' },
  action: {
    tool: 'github.labels.add',
    connector: 'github',
    instance: 'acme',
    target: 'github:octo-org/payments#7',
    fields: { labels: ['triage'] },
    effect: 'natural',
    risk,
    blastRadius: 'low',
    environment: 'dev',
    destructive: false,
    reversible: true,
    undo: false,
    makers: [],
  },
});

/** The first decision of a function loads the engine and reads the policies. */
export async function policyDecisionMs(): Promise<{ coldMs: number; warmMs: number }> {
  const policy = wirePolicy({ policies: async () => ({ engine: 'cedar', files: {} }) }, { isTool: () => true });
  const cold = performance.now();
  await policy.decide(request('low'));
  const warm = performance.now();
  for (let n = 0; n < DECISIONS; n += 1) await policy.decide(request(n % 2 ? 'low' : 'medium'));
  return { coldMs: warm - cold, warmMs: (performance.now() - warm) / DECISIONS };
}
