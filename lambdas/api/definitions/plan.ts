import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { githubDelivery } from '../../intake/github-delivery.ts';
import { servicenowDelivery } from '../../intake/servicenow-delivery.ts';
import { automationOfWorkflow } from '../../intake/start-automation.ts';
import type { Definitions, PublishedVersion } from '../../pipeline/definitions.ts';
import { appliedPlan } from '../../plan/applied-plan.ts';
import { type Plan, type Planner, planRun } from '../../plan/plan.ts';
import { PLAN_VALID_MS } from '../../plan/plan-store.ts';
import { CountersignError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import type { Trigger } from '../../run/run.ts';
import { readCallingWorkflow } from '../../workflow/called-versions.ts';
import { isSameWorkflow } from '../../workflow/publish-workflow.ts';
import type { Caller } from '../authorizer/caller.ts';
import { planRoutes, type SimulateBody } from '../contract/workflows.ts';
import { bytesInResponse, PAGE_MAX_BYTES, withoutLargeValues } from '../response-size.ts';
import { router } from '../router.ts';
import { applyPlan, type PlanApplier } from './apply-plan.ts';
import { inLines } from './workflows.ts';

export interface PlanPorts extends Omit<PlanApplier, 'definitions'> {
  definitions: Planner['definitions'] &
    Pick<Definitions, 'automations' | 'workflow' | 'workflowVersions' | 'newestWorkflows'>;
}

export const handlePlan = router<PlanPorts, typeof planRoutes>(planRoutes, {
  async simulateWorkflow(ports, { caller, body }) {
    const { tenant } = caller;
    const { workflow, version } = await workflowOf(ports, caller, body);
    const planned = await automationOf(ports, caller, body, workflow.name);
    const trigger = triggerOf(ports, body);
    try {
      const startable = body.save
        ? await startableFor(ports, tenant, planned.automation, workflow.name, version)
        : undefined;
      const {
        automation,
        workspace,
        inputs: from,
      } = startable ? { ...startable, automation: startable.name } : planned;
      const inputs = { given: body.inputs, from };
      const plan = await planRun(ports, { tenant, automation, workspace, workflow, version, trigger, inputs });
      if (!startable) return { status: 200, body: withinLimit(plan) };
      const expiresAt = later(plan.plannedAt, PLAN_VALID_MS);
      const stored = { automation: startable, trigger, savedBy: caller.person, plannedAt: plan.plannedAt, expiresAt };
      await ports.plans.savePlan(tenant, {
        plan: appliedPlan(plan),
        ...stored,
        ...(body.inputs && { inputs: body.inputs }),
      });
      return { status: 200, body: { ...withinLimit(plan), expiresAt } };
    } catch (error) {
      if (error instanceof CountersignError) throw new Problem(422, error.code, error.message);
      throw error;
    }
  },

  async applyPlan(ports, { caller, params: { hash } }) {
    const { isNew, run } = await applyPlan(ports, caller, hash);
    return { status: isNew ? 201 : 200, body: run };
  },
});

/** A saved plan runs in the name of an automation of this workflow, or of the workflow itself. */
async function startableFor(ports: PlanPorts, tenant: string, automation: string, name: string, version: number) {
  const all = await ports.definitions.automations(tenant);
  const exists = all.some((each) => each.name === automation);
  return automationOfWorkflow(ports, tenant, { workflow: { name, version }, ...(exists && { automation }) });
}

/** Replaces the largest values of a very large plan by size and hash. The plan's own hash covers all values. */
const withinLimit = (plan: Plan): Plan =>
  bytesInResponse(plan) <= PAGE_MAX_BYTES ? plan : { ...plan, steps: plan.steps.map(withoutLargeValues) };

async function workflowOf(
  ports: PlanPorts,
  { tenant, person }: Caller,
  { workflow: wanted }: SimulateBody,
): Promise<PublishedVersion> {
  if (typeof wanted !== 'string') {
    const found = await published(ports, tenant, wanted);
    if (found) return found;
    const { name, version } = wanted;
    throw new Problem(404, 'NOT_FOUND', `there is no ${version ? `version ${version} of ` : ''}workflow ${name}`);
  }
  const read = await readCallingWorkflow(ports.definitions, tenant, wanted);
  if ('problems' in read) throw new Problem(422, 'WORKFLOW_INVALID', inLines(read.problems));
  const newest = await published(ports, tenant, { name: read.workflow.name });
  if (newest && isSameWorkflow(newest.workflow, read.workflow)) return newest;
  // As if the caller published it now.
  return { workflow: { ...read.workflow, author: person }, version: (newest?.version ?? 0) + 1 };
}

async function published(
  { definitions }: PlanPorts,
  tenant: string,
  { name, version }: { name: string; version?: number },
): Promise<PublishedVersion | undefined> {
  if (version === undefined) return (await definitions.workflowVersions(tenant, name, { limit: 1 }))[0];
  const workflow = await definitions.workflow(tenant, name, version);
  return workflow && { workflow, version };
}

/** An automation that does not exist yet gets the defaults of a new one. */
async function automationOf(
  { definitions }: PlanPorts,
  { tenant }: Caller,
  { automation: wanted }: SimulateBody,
  workflow: string,
): Promise<{ automation: string; workspace: string; inputs?: Record<string, unknown> }> {
  const all = await definitions.automations(tenant);
  const found = all.find((each) => (wanted === undefined ? each.workflow.name === workflow : each.name === wanted));
  return {
    automation: found?.name ?? wanted ?? workflow,
    workspace: found?.workspace ?? 'default',
    ...(found?.inputs && { inputs: found.inputs }),
  };
}

function triggerOf(ports: PlanPorts, { source, event: name, payload }: SimulateBody): Trigger {
  const headers = { 'x-github-event': name, 'x-github-delivery': 'plan' };
  const delivery = source === 'github' ? githubDelivery(headers, payload) : servicenowDelivery(payload);
  const { event, fields, makers } = delivery;
  return { source, event, fields, payload, makers, receivedAt: isoNow(ports.clock) };
}
