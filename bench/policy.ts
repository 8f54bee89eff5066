import { sampleRequest } from '../lambdas/policy/check-policies.ts';
import { wirePolicy } from '../lambdas/policy/policy.wiring.ts';

const DECISIONS = 2_000;

/** The first decision of a function loads the engine and reads the policies. */
export async function policyDecisionMs(): Promise<{ coldMs: number; warmMs: number }> {
  const request = (risk: 'low' | 'medium') => sampleRequest({ effect: 'natural', risk });
  const policy = wirePolicy({ policies: async () => ({ engine: 'cedar', files: {} }) }, { isTool: () => true });
  const cold = performance.now();
  await policy.decide(request('low'));
  const warm = performance.now();
  for (let n = 0; n < DECISIONS; n += 1) await policy.decide(request(n % 2 ? 'low' : 'medium'));
  return { coldMs: warm - cold, warmMs: (performance.now() - warm) / DECISIONS };
}
