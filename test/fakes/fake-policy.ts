import type { Policy, PolicyDecision, PolicyRequest } from '../../lambdas/policy/policy.ts';

export const TEST_POLICY_HASH = 'test';

export const ALLOWED: PolicyDecision = {
  verdict: 'allow',
  policyHash: TEST_POLICY_HASH,
  policies: ['test'],
  reasons: [],
};

/** Decides as a test says, by default yes, and remembers what it was asked and how. */
export class FakePolicy implements Policy {
  readonly asked: { request: PolicyRequest; fresh: boolean }[] = [];
  /** May be exchanged in the middle of a story. */
  decision: (request: PolicyRequest) => PolicyDecision;

  constructor(decision: (request: PolicyRequest) => PolicyDecision = () => ALLOWED) {
    this.decision = decision;
  }

  async decide(request: PolicyRequest, looking = { fresh: false }): Promise<PolicyDecision> {
    this.asked.push({ request, fresh: looking.fresh });
    return this.decision(request);
  }
}
