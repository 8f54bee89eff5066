import type { PolicyDecision, PolicyRequest, TenantPolicies } from './policy.ts';

/** Policies that were read and checked, ready to decide. */
export interface PreparedPolicies {
  /** Identifies the whole set: the engine, what ships and what the tenant added. */
  readonly hash: string;
  /** What can hardly be meant, such as a policy that never applies. Publishing refuses it; deciding does not. */
  readonly warnings: readonly string[];
  /** What the tenant's own policies are called; a compiled one has no parts to name. */
  readonly ids: readonly string[];
  /** The tools and connectors that policies speak of by name. */
  readonly mentions: readonly Mention[];
  /** May throw. Whoever asks takes that as a no: see FailClosedPolicy. */
  decide(request: PolicyRequest): PolicyDecision | Promise<PolicyDecision>;
}

/** A name in a policy that stands for nothing unless there is such a tool or connector. */
export interface Mention {
  kind: 'Operation' | 'Connector';
  id: string;
  /** `change-freeze.cedar:3` */
  place: string;
}

/** Reads one kind of policies. Throws InvalidPolicies for what their author can mend, anything else if it is broken itself. */
export interface PolicyEngine<Kind extends TenantPolicies['engine']> {
  prepare(policies: Extract<TenantPolicies, { engine: Kind }>): Promise<PreparedPolicies>;
}

export type PolicyEngines = { [Kind in TenantPolicies['engine']]: PolicyEngine<Kind> };

export function prepare(engines: PolicyEngines, policies: TenantPolicies): Promise<PreparedPolicies> {
  switch (policies.engine) {
    case 'cedar':
      return engines.cedar.prepare(policies);
    case 'rego':
      return engines.rego.prepare(policies);
    default:
      throw new InvalidPolicies([`there is no policy engine "${String((policies as TenantPolicies).engine)}"`]);
  }
}

/** Everything that is wrong with a set of policies, each problem with its file and line and what to do. */
export class InvalidPolicies extends Error {
  override name = 'InvalidPolicies';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}
