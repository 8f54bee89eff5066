import type { Policy, PolicyDecision, PolicyOptions, PolicyRequest } from '../../lambdas/policy/policy.ts';

export const TEST_POLICY_HASH = 'test';

export const ALLOWED: PolicyDecision = {
  verdict: 'allow',
  policyHash: TEST_POLICY_HASH,
  policies: ['test'],
  reasons: [],
};

/** Decides as a test says, by default `allow`, and records the requests. */
export class FakePolicy implements Policy {
  readonly asked: { request: PolicyRequest; fresh: boolean }[] = [];
  /** A test may replace it at any time. */
  decision: (request: PolicyRequest) => PolicyDecision;

  /** As for policies that mention the values before a write. */
  usesBefore = false;

  constructor(decision: (request: PolicyRequest) => PolicyDecision = () => ALLOWED) {
    this.decision = decision;
  }

  async decide(asked: PolicyRequest, { fresh = false, readBefore }: PolicyOptions = {}): Promise<PolicyDecision> {
    const before = this.usesBefore && !asked.before ? await readBefore?.() : undefined;
    const request = before ? { ...asked, before } : asked;
    this.asked.push({ request, fresh });
    return this.decision(request);
  }
}
