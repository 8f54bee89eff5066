import type { PolicyDecision, PolicyRequest, TenantPolicies } from './policy.ts';

/** Parsed and validated policies. */
export interface PreparedPolicies {
  /** Identifies the whole set: the engine, the shipped policies and the tenant's. */
  readonly hash: string;
  /** Likely mistakes, such as a policy that never applies. They prevent publishing, not deciding. */
  readonly warnings: readonly string[];
  /** The ids of the tenant's policies; empty for a compiled policy. */
  readonly ids: readonly string[];
  /** The tools and connectors that the policies name. */
  readonly mentions: readonly Mention[];
  /** The tenant's policies one by one; nothing for a compiled policy. */
  readonly rules?: readonly PolicyRule[];
  /** The decision may depend on the values before the write. */
  readonly usesBefore?: boolean;
  /** May throw. FailClosedPolicy turns an error into a denial. */
  decide(request: PolicyRequest): PolicyDecision | Promise<PolicyDecision>;
}

export interface PolicyRule {
  id: string;
  effect: 'permit' | 'forbid';
  /** Equal for policies that differ in layout and comments only. */
  content: string;
}

/** A tool or connector that a policy names. */
export interface Mention {
  kind: 'Operation' | 'Connector';
  id: string;
  /** `change-freeze.cedar:3` */
  place: string;
}

/** Throws InvalidPolicies if the author can fix the problem, other errors if the engine fails. */
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
      throw new InvalidPolicies([
        `unknown policy engine "${String((policies as TenantPolicies).engine)}"; use cedar or rego`,
      ]);
  }
}

/** All problems of a policy set, each with file, line and what to do. */
export class InvalidPolicies extends Error {
  override name = 'InvalidPolicies';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}
