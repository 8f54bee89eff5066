import { findOperation } from '../connectors/registry.ts';
import { systemClock, systemLog, systemStopwatch } from '../entry/system.ts';
import { CedarPolicies } from './cedar-policies.ts';
import { CedarRuntime, loadCedar } from './cedar-runtime.ts';
import { FailClosedPolicy } from './fail-closed-policy.ts';
import { OpaPolicies } from './opa-policies.ts';
import type { TenantPolicies } from './policy.ts';
import type { PolicyEngines } from './policy-engine.ts';
import { readShippedPolicies } from './shipped-policies.ts';

/** The engines load on first use. */
export function wirePolicyEngines(): PolicyEngines {
  return {
    cedar: new CedarPolicies(new CedarRuntime(loadCedar, () => readShippedPolicies().schema), readShippedPolicies),
    rego: new OpaPolicies(),
  };
}

export function wirePolicy(
  definitions: { policies(tenant: string): Promise<TenantPolicies> },
  { isTool = (tool: string) => findOperation(tool) !== undefined, engines = wirePolicyEngines(), log = systemLog } = {},
): FailClosedPolicy {
  return new FailClosedPolicy({
    tenantPolicies: (tenant) => definitions.policies(tenant),
    engines,
    isTool,
    now: systemClock.now,
    stopwatch: systemStopwatch,
    log,
  });
}
