import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { repeatedRequest } from '../../intake/request-run.ts';
import { type Starter, startAutomation, startableVersion } from '../../intake/start-automation.ts';
import { type Planner, planRun } from '../../plan/plan.ts';
import type { PlanStore } from '../../plan/plan-store.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { deliveryKey, type StartedRun } from '../../run/idempotency.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/caller.ts';

export type PlanApplier = Starter & Planner & { plans: PlanStore; runs: Pick<RunStore, 'idempotencyRecord'> };

/**
 * Plans again and starts the run only if the plan is still the same: same workflow, event, policies, writes and values at
 * the targets. The worker checks each write again before it is made. Each saved plan starts one run.
 */
export async function applyPlan(
  applier: PlanApplier,
  { tenant, person }: Caller,
  planHash: string,
): Promise<{ isNew: boolean; run: StartedRun }> {
  const saved = await applier.plans.savedPlan(tenant, planHash);
  if (!saved || saved.expiresAt <= isoNow(applier.clock)) {
    const why = saved ? `expired at ${saved.expiresAt}` : 'does not exist or is not saved';
    throw new Problem(404, 'NOT_FOUND', `the plan ${planHash} ${why}; simulate again and save the plan (--save)`);
  }
  const { automation, trigger, subject, inputs, plan, plannedAt, savedBy } = saved;
  const key = deliveryKey.plan({ planHash, plannedAt });
  const requestHash = hashOf({ planHash, plannedAt });
  // Before it plans again: the first run has changed the targets.
  const earlier = await repeatedRequest(applier, tenant, key, requestHash);
  if (earlier) return { isNew: false, run: earlier };
  const { name, workspace, workflow: version } = automation;
  const published = await startableVersion(applier, tenant, version);
  const { receivedAt: _receivedAt, ...event } = trigger;
  const given = { given: inputs, from: automation.inputs };
  const again = { tenant, automation: name, workspace, workflow: published.workflow, version: version.version };
  const now = await planRun(applier, { ...again, trigger, inputs: given });
  if (now.planHash !== planHash) {
    const detail =
      'the plan is no longer what would happen: the workflow, policies, people or a target changed since; nothing was started. Simulate again';
    throw new Problem(409, 'PLAN_DRIFTED', detail);
  }
  return startAutomation(applier, {
    tenant,
    automation,
    trigger: { ...event, plan },
    ...(subject !== undefined && { subject }),
    request: { actor: person, planHash },
    key: () => key,
    requestHash,
    ...(inputs && { inputs }),
    // Who saved the plan wrote its event and inputs.
    makers: [...new Set([savedBy, person])],
  });
}
