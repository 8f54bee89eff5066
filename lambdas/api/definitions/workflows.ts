import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import type { Definitions, PublishedVersion } from '../../pipeline/definitions.ts';
import { triedWorkflow } from '../../workflow/checks/expression-limits.ts';
import type { Expressions } from '../../workflow/expressions/expressions.ts';
import { type FileProblem, readWorkflow } from '../../workflow/parse-workflow.ts';
import { publishNextVersion } from '../../workflow/publish-workflow.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { type Paged, PageQuery, pageByPlace, readPage } from '../paging/paging.ts';
import { parseQuery, rawText } from '../request.ts';
import type { Handlers } from '../router.ts';

export interface WorkflowsApi extends Paged {
  definitions: Pick<Definitions, 'workflow' | 'workflowVersions' | 'newestWorkflows' | 'publishWorkflow'>;
  clock: Clock;
  ids: Ids;
  expressions: Expressions;
}

export const WORKFLOW_HANDLERS: Handlers<WorkflowsApi, 'workflows'> = {
  'POST /api/v1/workflows': publish,
  'POST /api/v1/workflows/validate': validate,
  'GET /api/v1/workflows': list,
  'GET /api/v1/workflows/{name}': versions,
  'GET /api/v1/workflows/{name}/versions/{version}': show,
};

/** The body is the file: 201 with the version it became, 200 if it is the newest version already. */
async function publish(api: WorkflowsApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'define', 'publish workflows');
  const read = await readAndTry(api, caller, event);
  if ('problems' in read) throw new Problem(422, 'WORKFLOW_INVALID', inLines(read.problems));
  const { workflow } = read;
  const published = await publishNextVersion(api, caller.tenant, workflow, caller.person);
  if (!published) throw new Problem(409, 'CONFLICT', `others are publishing ${workflow.name} too; try again`);
  return json(published.isNew ? 201 : 200, { name: workflow.name, version: published.version });
}

export const inLines = (problems: FileProblem[]) =>
  problems.map(({ line, path, message }) => `line ${line}: ${path ? `${path}: ` : ''}${message}`).join('\n');

async function validate(api: WorkflowsApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const read = await readAndTry(api, caller, event);
  const problems = 'problems' in read ? read.problems : [];
  return json(200, { valid: problems.length === 0, problems });
}

/** What can be read is tried too: an expression that never ends is refused before a run meets it. */
async function readAndTry(
  { expressions }: WorkflowsApi,
  { tenant }: Caller,
  event: HttpEvent,
): Promise<{ workflow: Workflow } | { problems: FileProblem[] }> {
  const read = readWorkflow(rawText(event));
  if ('problems' in read) return read;
  const problems = await triedWorkflow(expressions, tenant, read.workflow);
  if (problems.length === 0) return read;
  return {
    problems: problems.map(({ path, message }) => ({ line: read.lineOf(path), path: path.join('.'), message })),
  };
}

async function list(api: WorkflowsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const page = await readPage(api, `${tenant}/workflows`, parseQuery(PageQuery, event), ({ after, limit }) =>
    pageByPlace(
      limit,
      (count) => api.definitions.newestWorkflows(tenant, { after, limit: count }),
      ({ workflow }) => workflow.name,
    ),
  );
  return json(200, { workflows: page.items.map(versionView), nextCursor: page.nextCursor });
}

async function versions(api: WorkflowsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const name = event.pathParameters?.name ?? '';
  const before = (after: string | undefined) => (after === undefined ? {} : { before: Number(after) });
  const page = await readPage(api, `${tenant}/workflows/${name}`, parseQuery(PageQuery, event), ({ after, limit }) =>
    pageByPlace(
      limit,
      (count) => api.definitions.workflowVersions(tenant, name, { ...before(after), limit: count }),
      ({ version }) => String(version),
    ),
  );
  if (page.items.length === 0) throw new Problem(404, 'NOT_FOUND', `there is no workflow ${name}`);
  return json(200, { name, versions: page.items.map(versionView), nextCursor: page.nextCursor });
}

async function show(api: WorkflowsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
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
