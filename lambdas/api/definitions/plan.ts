import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { githubDelivery } from '../../intake/github-delivery.ts';
import { servicenowDelivery } from '../../intake/servicenow-delivery.ts';
import type { Definitions, PublishedVersion } from '../../pipeline/definitions.ts';
import { type Plan, type Planner, planRun } from '../../plan/plan.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Trigger } from '../../run/run.ts';
import { readWorkflow } from '../../workflow/parse-workflow.ts';
import { isSameWorkflow } from '../../workflow/publish-workflow.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { parseBody } from '../request.ts';
import { bytesInResponse, PAGE_MAX_BYTES, withoutLargeValues } from '../response-size.ts';
import { byRoute, type Handlers } from '../router.ts';
import { inLines } from './workflows.ts';

const SimulateBody = z.strictObject({
  /** The text of a file, or a version that is published (the newest, if none is named). */
  workflow: z.union([z.string(), z.strictObject({ name: z.string(), version: z.int().positive().optional() })]),
  source: z.enum(['github', 'servicenow']),
  /** What GitHub says happened, `issues`. */
  event: z.string().default('issues'),
  payload: z.json(),
  /** As which automation; policies may tell them apart. Without it, the one that runs this workflow. */
  automation: z.string().optional(),
});
type SimulateBody = z.infer<typeof SimulateBody>;

export interface PlanApi extends Planner {
  definitions: Planner['definitions'] & Pick<Definitions, 'automations' | 'workflow' | 'workflowVersions'>;
}

const HANDLERS: Handlers<PlanApi, 'plan'> = { 'POST /api/v1/workflows/simulate': simulate };

/** What a run would do, without doing it. */
export const handlePlan = byRoute(HANDLERS);

async function simulate(api: PlanApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'control', 'ask for a plan, which shows what is at the targets');
  const body = parseBody(SimulateBody, event);
  const { workflow, version } = await workflowOf(api, caller, body);
  const { automation, workspace } = await automationOf(api, caller, body, workflow.name);
  const trigger = triggerOf(api, body);
  try {
    const { tenant } = caller;
    return json(200, sendable(await planRun(api, { tenant, automation, workspace, workflow, version, trigger })));
  } catch (error) {
    if (error instanceof CountersignError) throw new Problem(422, error.code, error.message);
    throw error;
  }
}

/** A plan of many large writes shows their largest values by size and hash; its own hash is of all of them. */
const sendable = (plan: Plan): Plan =>
  bytesInResponse(plan) <= PAGE_MAX_BYTES ? plan : { ...plan, steps: plan.steps.map(withoutLargeValues) };

async function workflowOf(
  api: PlanApi,
  { tenant, person }: Caller,
  { workflow: wanted }: SimulateBody,
): Promise<PublishedVersion> {
  if (typeof wanted !== 'string') {
    const found = await published(api, tenant, wanted);
    if (found) return found;
    const { name, version } = wanted;
    throw new Problem(404, 'NOT_FOUND', `there is no ${version ? `version ${version} of ` : ''}workflow ${name}`);
  }
  const read = readWorkflow(wanted);
  if ('problems' in read) throw new Problem(422, 'WORKFLOW_INVALID', inLines(read.problems));
  const newest = await published(api, tenant, { name: read.workflow.name });
  if (newest && isSameWorkflow(newest.workflow, read.workflow)) return newest;
  // As if it were published now, by whoever asks.
  return { workflow: { ...read.workflow, author: person }, version: (newest?.version ?? 0) + 1 };
}

async function published(
  { definitions }: PlanApi,
  tenant: string,
  { name, version }: { name: string; version?: number },
): Promise<PublishedVersion | undefined> {
  if (version === undefined) return (await definitions.workflowVersions(tenant, name, { limit: 1 }))[0];
  const workflow = await definitions.workflow(tenant, name, version);
  return workflow && { workflow, version };
}

/** An automation that is not there yet gets what a new one would. */
async function automationOf(
  { definitions }: PlanApi,
  { tenant }: Caller,
  { automation: wanted }: SimulateBody,
  workflow: string,
): Promise<{ automation: string; workspace: string }> {
  const all = await definitions.automations(tenant);
  const found = all.find((each) => (wanted === undefined ? each.workflow.name === workflow : each.name === wanted));
  return { automation: found?.name ?? wanted ?? workflow, workspace: found?.workspace ?? 'default' };
}

function triggerOf(api: PlanApi, { source, event: name, payload }: SimulateBody): Trigger {
  const headers = { 'x-github-event': name, 'x-github-delivery': 'plan' };
  const delivery = source === 'github' ? githubDelivery(headers, payload) : servicenowDelivery(payload);
  const { event, fields, makers } = delivery;
  return { source, event, fields, payload, makers, receivedAt: isoNow(api.clock) };
}
