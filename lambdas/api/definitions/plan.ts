import type { AgentRegistry } from '../../agents/agent-registry.ts';
import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { type Sample, sampleTrigger } from '../../intake/sample-trigger.ts';
import { automationOfWorkflow } from '../../intake/start-automation.ts';
import type { Definitions, PublishedVersion } from '../../pipeline/definitions.ts';
import { isSameWorkflow } from '../../pipeline/publish-workflow.ts';
import { appliedPlan } from '../../plan/applied-plan.ts';
import { type Plan, type Planner, planRun } from '../../plan/plan.ts';
import { PLAN_VALID_MS } from '../../plan/plan-store.ts';
import { commandWarnings } from '../../proposal/command-warnings.ts';
import { CountersignError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import type { Trigger } from '../../run/run.ts';
import { readCallingWorkflow } from '../../workflow/called-versions.ts';
import type { Caller } from '../authorizer/caller.ts';
import { planRoutes, type SimulateBody } from '../contract/definitions/workflows.ts';
import { bytesInResponse, PAGE_MAX_BYTES, withoutLargeValues } from '../response-size.ts';
import { router } from '../router.ts';
import { applyPlan, type PlanApplier } from './apply-plan.ts';
import { inLines } from './workflows.ts';

export interface PlanPorts extends Omit<PlanApplier, 'definitions'> {
  definitions: Planner['definitions'] &
    Pick<Definitions, 'automations' | 'sources' | 'workflow' | 'workflowVersions' | 'newestWorkflows' | 'profiles'>;
  agents: Pick<AgentRegistry, 'agents'>;
}

export const handlePlan = router<PlanPorts, typeof planRoutes>(planRoutes, {
  async simulateWorkflow(ports, { caller, body }) {
    const { tenant } = caller;
    const { workflow, version } = await workflowOf(ports, caller, body);
    const named = await automationOf(ports, caller, body, workflow.name);
    try {
      const startable = body.save
        ? await startableFor(ports, tenant, named.automation, workflow.name, version)
        : undefined;
      const { automation, workspace, inputs: from } = startable ? { ...startable, automation: startable.name } : named;
      const sample = await sampleOf(ports, caller, automation, body);
      const { trigger: made, ...about } = await sampleTrigger({ tenant, expressions: ports.expressions }, sample);
      const simulated = body.save && sample.source !== 'manual';
      const trigger: Trigger = { ...made, ...(simulated && { simulated }), receivedAt: isoNow(ports.clock) };
      const inputs = { given: body.inputs, from };
      const planned = await planRun(ports, { tenant, automation, workspace, workflow, version, trigger, inputs });
      const plan = await withCommandWarnings(ports, tenant, planned);
      if (!startable) return { status: 200, body: withinLimit(plan) };
      const expiresAt = later(plan.plannedAt, PLAN_VALID_MS);
      const stored = { automation: startable, trigger, ...about, savedBy: caller.person, expiresAt };
      await ports.plans.savePlan(tenant, {
        plan: appliedPlan(plan),
        ...stored,
        plannedAt: plan.plannedAt,
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

/** The fields of a proposed command are its input, with the values that the run would have. */
async function withCommandWarnings(ports: PlanPorts, tenant: string, plan: Plan): Promise<Plan> {
  const steps = plan.steps.flatMap((step) =>
    step.kind === 'call' && step.reached && !step.provisional
      ? [{ id: step.id, tool: step.tool, input: step.fields }]
      : [],
  );
  return { ...plan, warnings: [...plan.warnings, ...(await commandWarnings(ports, tenant, steps))] };
}

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

/** What would start the run, as far as the fields of the request fit together. */
async function sampleOf(
  { definitions }: PlanPorts,
  { tenant, person }: Caller,
  automation: string,
  { source, event, sourceName, payload, title, subject, inputs }: SimulateBody,
): Promise<Sample> {
  const refuse = (detail: string) => new Problem(400, 'BAD_REQUEST', detail);
  if (event !== undefined && source !== 'github') throw refuse('event: only an event of GitHub is named; remove it');
  if ((sourceName !== undefined) !== (source === 'generic')) {
    throw refuse('sourceName: a generic webhook needs the name of its source; other events have none');
  }
  if (source === 'manual') {
    if (payload !== undefined) throw refuse('source: name the source of the payload: github, servicenow or generic');
    return { source, person, automation, title, subject, inputs };
  }
  if (payload === undefined) throw refuse('payload: the body of the webhook is missing');
  if (title !== undefined || subject !== undefined) {
    throw refuse('title, subject: only for a manual start; those of an event come from its payload');
  }
  if (source === 'github') return { source, payload, event };
  if (source === 'servicenow') return { source, payload };
  const all = await definitions.sources(tenant);
  const definition = all.find(({ name }) => name === sourceName);
  if (definition) return { source, definition, payload };
  const names = all.map(({ name }) => name);
  throw new Problem(404, 'NOT_FOUND', `there is no webhook source ${sourceName}${didYouMean(sourceName ?? '', names)}`);
}
