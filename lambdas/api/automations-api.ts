import * as z from 'zod';
import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import { Automation, type Definitions } from '../pipeline/definitions.ts';
import { expressionProblems } from '../workflow/check-expressions.ts';
import type { Caller } from './api-keys.ts';
import { assertMayDefine } from './may-define.ts';
import { readPage } from './paging.ts';
import { parseBody } from './request.ts';

/** Warm functions keep automations this long before they look again (pipeline/kept-definitions.ts). */
const EFFECTIVE_WITHIN_SECONDS = 60;

/** The name is the path's; a body that names it anyway must mean the same. */
const AutomationBody = Automation.extend({ name: z.string().optional() });

export interface AutomationsApi {
  definitions: Pick<Definitions, 'automations' | 'saveAutomation' | 'workflow' | 'latestVersion'>;
  cursorSecret: () => Promise<string>;
}

type Answer = (api: AutomationsApi, caller: Caller, event: HttpEvent) => Promise<HttpAnswer>;

/** Routes of automations, by the names API Gateway knows them. */
export const AUTOMATION_ROUTES: Readonly<Record<string, Answer>> = {
  'GET /api/v1/automations': list,
  'GET /api/v1/automations/{name}': show,
  'PUT /api/v1/automations/{name}': save,
};

async function list(api: AutomationsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const page = await readPage(event, {
    name: `${tenant}/automations`,
    cursorSecret: api.cursorSecret,
    // All of them are read for every event that comes in: a tenant has no more than that bears.
    read: async ({ after = '', limit }) =>
      (await api.definitions.automations(tenant)).filter(({ name }) => name > after).slice(0, limit),
    placeOf: ({ name }) => name,
  });
  return json(200, { automations: page.items, nextCursor: page.nextCursor });
}

async function show(api: AutomationsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const name = event.pathParameters?.name ?? '';
  const found = (await api.definitions.automations(tenant)).find((automation) => automation.name === name);
  if (!found) throw new Problem(404, 'NOT_FOUND', `there is no automation ${name}`);
  return json(200, found);
}

async function save(api: AutomationsApi, caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  assertMayDefine(caller);
  const body = parseBody(AutomationBody, event);
  const named = Automation.safeParse({ ...body, name: event.pathParameters?.name });
  if (!named.success) throw new Problem(400, 'BAD_REQUEST', z.prettifyError(named.error));
  const automation = named.data;
  if (body.name !== undefined && body.name !== automation.name) {
    throw new Problem(400, 'BAD_REQUEST', `the body is about ${body.name}, the path about ${automation.name}`);
  }
  const [wrong] = expressionProblems(automation.trigger.filter, { roots: ['trigger'], steps: new Set() });
  if (wrong) throw new Problem(422, 'AUTOMATION_INVALID', `trigger.filter: ${wrong.message}`);
  await assertPublished(api, caller.tenant, automation);
  await api.definitions.saveAutomation(caller.tenant, automation);
  return json(200, { ...automation, effectiveWithinSeconds: EFFECTIVE_WITHIN_SECONDS });
}

async function assertPublished(
  { definitions }: AutomationsApi,
  tenant: string,
  { workflow }: Automation,
): Promise<void> {
  const { name, version } = workflow;
  if (await definitions.workflow(tenant, name, version)) return;
  const newest = await definitions.latestVersion(tenant, name);
  const there = newest === 0 ? 'none is published' : `the newest is ${newest}`;
  throw new Problem(422, 'AUTOMATION_INVALID', `there is no version ${version} of workflow ${name}; ${there}`);
}
