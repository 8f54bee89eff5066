import { sampleRequest } from '../lambdas/policy/check-policies.ts';
import { wirePolicy } from '../lambdas/policy/policy.wiring.ts';

const DECISIONS = 2_000;

/** The first decision of a function loads the engine and reads the policies. A known one differs only in what no policy reads. */
export async function policyDecisionMs(): Promise<{ coldMs: number; warmMs: number; knownMs: number }> {
  const request = (risk: 'low' | 'medium', automation: string) => ({
    ...sampleRequest({ effect: 'natural', risk }),
    automation,
  });
  const policy = wirePolicy({ policies: async () => ({ engine: 'cedar', files: {} }) }, { isTool: () => true });
  const each = async (automation: (n: number) => string) => {
    const startedAt = performance.now();
    for (let n = 0; n < DECISIONS; n += 1) await policy.decide(request(n % 2 ? 'low' : 'medium', automation(n)));
    return (performance.now() - startedAt) / DECISIONS;
  };
  const cold = performance.now();
  await policy.decide(request('low', 'first'));
  const coldMs = performance.now() - cold;
  return { coldMs, warmMs: await each((n) => `automation-${n}`), knownMs: await each(() => 'first') };
}
