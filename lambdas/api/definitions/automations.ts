import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import { checkEventName } from '../../pipeline/check-event-name.ts';
import { Automation, type Definitions } from '../../pipeline/definitions.ts';
import { expressionProblems } from '../../workflow/checks/check-expressions.ts';
import { tried } from '../../workflow/checks/expression-limits.ts';
import type { Expressions } from '../../workflow/expressions/expressions.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { type Paged, PageQuery, pageOf, readPage } from '../paging/paging.ts';
import { parseBody, parseQuery, whatIsWrong } from '../request.ts';
import type { Handlers } from '../router.ts';
import { authorOf } from './change-person.ts';

/** The name is the path's; a body that names it anyway must mean the same. */
const AutomationBody = Automation.extend({ name: z.string().optional() });

export interface AutomationsApi extends Paged {
  definitions: Pick<Definitions, 'automations' | 'saveAutomation' | 'workflow' | 'workflowVersions'>;
  clock: Clock;
  ids: Ids;
  expressions: Expressions;
}

export const AUTOMATION_HANDLERS: Handlers<AutomationsApi, 'automations'> = {
  'GET /api/v1/automations': list,
  'GET /api/v1/automations/{name}': show,
  'PUT /api/v1/automations/{name}': save,
};

async function list(api: AutomationsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  // All of them are read for every event that comes in: a tenant has no more than that bears.
  const all = await api.definitions.automations(tenant);
  const page = await readPage(api, `${tenant}/automations`, parseQuery(PageQuery, event), (place) =>
    pageOf(all, place, ({ name }) => name),
  );
  return json(200, { automations: page.items, nextCursor: page.nextCursor });
}

async function show(api: AutomationsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const name = event.pathParameters?.name ?? '';
  const found = (await api.definitions.automations(tenant)).find((automation) => automation.name === name);
  if (!found) throw new Problem(404, 'NOT_FOUND', `there is no automation ${name}`);
  return json(200, found);
}

async function save(api: AutomationsApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'define', 'change automations');
  const body = parseBody(AutomationBody, event);
  const named = Automation.safeParse({ ...body, name: event.pathParameters?.name });
  if (!named.success) throw new Problem(400, 'BAD_REQUEST', whatIsWrong(named.error));
  const automation = named.data;
  if (body.name !== undefined && body.name !== automation.name) {
    throw new Problem(400, 'BAD_REQUEST', `the body is about ${body.name}, the path about ${automation.name}`);
  }
  const [wrong] = expressionProblems(automation.trigger.filter, { roots: ['trigger'], steps: new Set() });
  if (wrong) throw new Problem(422, 'AUTOMATION_INVALID', `trigger.filter: ${wrong.message}`);
  const [endless] = await tried(api.expressions, caller.tenant, automation.trigger.filter);
  if (endless) throw new Problem(422, 'AUTOMATION_INVALID', `trigger.filter: ${endless.message}`);
  const unknown = checkEventName(automation.trigger);
  if (unknown) throw new Problem(422, 'AUTOMATION_INVALID', `trigger.event: ${unknown}`);
  await assertPublished(api, caller.tenant, automation);
  await api.definitions.saveAutomation(caller.tenant, automation, authorOf(api, caller));
  return json(200, { ...automation, effectiveWithinSeconds: CHANGES_SEEN_WITHIN_MS / 1000 });
}

async function assertPublished(
  { definitions }: AutomationsApi,
  tenant: string,
  { workflow }: Automation,
): Promise<void> {
  const { name, version } = workflow;
  if (await definitions.workflow(tenant, name, version)) return;
  const [newest] = await definitions.workflowVersions(tenant, name, { limit: 1 });
  const there = newest ? `the newest is ${newest.version}` : 'none is published';
  throw new Problem(422, 'AUTOMATION_INVALID', `there is no version ${version} of workflow ${name}; ${there}`);
}
