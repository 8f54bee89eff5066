import { type HttpAnswer, type HttpEvent, json, Problem, rawBody } from '../entry/http.ts';
import type { Clock } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { type FileProblem, readWorkflow } from '../workflow/parse-workflow.ts';
import { publishNextVersion } from '../workflow/publish-workflow.ts';
import type { PublishedVersion, WorkflowCatalog } from '../workflow/workflow-catalog.ts';
import type { Caller } from './api-keys.ts';
import { assertMayDefine } from './may-define.ts';
import { readPage } from './paging.ts';

const BODY_MAX_BYTES = 1024 * 1024;

export interface WorkflowsApi {
  definitions: Pick<Definitions, 'workflow' | 'latestVersion' | 'publishWorkflow'>;
  catalog: WorkflowCatalog;
  cursorSecret: () => Promise<string>;
  clock: Clock;
}

type Answer = (api: WorkflowsApi, caller: Caller, event: HttpEvent) => Promise<HttpAnswer>;

/** Routes of workflows, by the names API Gateway knows them. Planning is another function: it reaches outside. */
export const WORKFLOW_ROUTES: Readonly<Record<string, Answer>> = {
  'POST /api/v1/workflows': publish,
  'POST /api/v1/workflows/validate': validate,
  'GET /api/v1/workflows': list,
  'GET /api/v1/workflows/{name}': versions,
  'GET /api/v1/workflows/{name}/versions/{version}': show,
};

/** The body is the file: 201 with the version it became, 200 if it is the newest version already. */
async function publish(api: WorkflowsApi, caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  assertMayDefine(caller);
  const read = readWorkflow(textBody(event));
  if ('problems' in read) throw new Problem(422, 'WORKFLOW_INVALID', inLines(read.problems));
  const { workflow } = read;
  const published = await publishNextVersion(api, caller.tenant, workflow, caller.person);
  if (!published) throw new Problem(409, 'CONFLICT', `others are publishing ${workflow.name} too; try again`);
  return json(published.isNew ? 201 : 200, { name: workflow.name, version: published.version });
}

export const inLines = (problems: FileProblem[]) =>
  problems.map(({ line, path, message }) => `line ${line}: ${path ? `${path}: ` : ''}${message}`).join('\n');

function textBody(event: HttpEvent): string {
  const body = rawBody(event);
  if (body.length > BODY_MAX_BYTES) throw new Problem(413, 'TOO_LARGE', `at most ${BODY_MAX_BYTES} bytes are taken`);
  return body.toString('utf8');
}

async function validate(_api: WorkflowsApi, _caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const read = readWorkflow(textBody(event));
  const problems = 'problems' in read ? read.problems : [];
  return json(200, { valid: problems.length === 0, problems });
}

async function list(api: WorkflowsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const page = await readPage(event, {
    name: `${tenant}/workflows`,
    cursorSecret: api.cursorSecret,
    read: (wanted) => api.catalog.newest(tenant, wanted),
    placeOf: ({ workflow }) => workflow.name,
  });
  return json(200, { workflows: page.items.map(versionView), nextCursor: page.nextCursor });
}

async function versions(api: WorkflowsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const name = event.pathParameters?.name ?? '';
  const page = await readPage(event, {
    name: `${tenant}/workflows/${name}`,
    cursorSecret: api.cursorSecret,
    read: ({ after, limit }) =>
      api.catalog.versions(tenant, name, { limit, ...(after !== undefined && { before: Number(after) }) }),
    placeOf: ({ version }) => String(version),
  });
  if (page.items.length === 0) throw new Problem(404, 'NOT_FOUND', `there is no workflow ${name}`);
  return json(200, { name, versions: page.items.map(versionView), nextCursor: page.nextCursor });
}

async function show(api: WorkflowsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const { name = '', version = '' } = event.pathParameters ?? {};
  const workflow = /^[1-9]\d{0,5}$/.test(version)
    ? await api.definitions.workflow(tenant, name, Number(version))
    : undefined;
  if (!workflow) throw new Problem(404, 'NOT_FOUND', `there is no version ${version} of workflow ${name}`);
  const { author, publishedAt, ...definition } = workflow;
  return json(200, { ...versionView({ version: Number(version), workflow }), definition });
}

function versionView({ version, workflow }: PublishedVersion) {
  const { name, description = null, author = null, publishedAt = null, steps } = workflow;
  return { name, version, description, author, publishedAt, steps: steps.length };
}
