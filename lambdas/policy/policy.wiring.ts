import { findOperation } from '../connectors/registry.ts';
import { systemClock, systemLog, systemStopwatch } from '../entry/system.ts';
import { CedarPolicies } from './cedar-policies.ts';
import { CedarRuntime, loadCedar } from './cedar-runtime.ts';
import { FailClosedPolicy } from './fail-closed-policy.ts';
import { OpaPolicies } from './opa-policies.ts';
import type { TenantPolicies } from './policy.ts';
import type { PolicyEngines } from './policy-engine.ts';
import { readShippedPolicies } from './shipped-policies.ts';

/** The engines themselves; what they need is loaded at the first decision. */
export function systemEngines(): PolicyEngines {
  return {
    cedar: new CedarPolicies(new CedarRuntime(loadCedar, () => readShippedPolicies().schema), readShippedPolicies),
    rego: new OpaPolicies(),
  };
}

/** The policy that entry points ask, over what tenants have defined and the tools there are. */
export function systemPolicy(
  definitions: { policies(tenant: string): Promise<TenantPolicies> },
  { isTool = (tool: string) => findOperation(tool) !== undefined, engines = systemEngines(), log = systemLog } = {},
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
