import type { AgentRegistry } from '../../agents/agent-registry.ts';
import { approverWarnings } from '../../approval/texts/approver-warnings.ts';
import { Problem } from '../../entry/http.ts';
import { type Clock, type Ids, isoNow } from '../../entry/ports.ts';
import type { Definitions, PublishedVersion } from '../../pipeline/definitions.ts';
import { publishNextVersion } from '../../pipeline/publish-workflow.ts';
import { commandWarnings } from '../../proposal/command-warnings.ts';
import { readCallingWorkflow } from '../../workflow/called-versions.ts';
import { triedWorkflow } from '../../workflow/checks/expression-limits.ts';
import type { Expressions } from '../../workflow/expressions/expressions.ts';
import type { FileProblem } from '../../workflow/parse-workflow.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import type { workflowRoutes } from '../contract/definitions/workflows.ts';
import { type Paged, pageByPlace, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';

export interface WorkflowsPorts extends Paged {
  definitions: Pick<
    Definitions,
    'workflow' | 'workflowVersions' | 'newestWorkflows' | 'publishWorkflow' | 'people' | 'profiles'
  >;
  agents: Pick<AgentRegistry, 'agents'>;
  clock: Clock;
  ids: Ids;
  expressions: Expressions;
}

export const workflowHandlers: Handlers<WorkflowsPorts, typeof workflowRoutes> = {
  async listWorkflows(ports, { caller: { tenant }, query }) {
    const page = await readPage(ports, `${tenant}/workflows`, query, ({ after, limit }) =>
      pageByPlace(
        limit,
        (count) => ports.definitions.newestWorkflows(tenant, { after, limit: count }),
        ({ workflow }) => workflow.name,
      ),
    );
    return { status: 200, body: { workflows: page.items.map(versionView), nextCursor: page.nextCursor } };
  },

  async listWorkflowVersions(ports, { caller: { tenant }, params: { name }, query }) {
    const before = (after: string | undefined) => (after === undefined ? {} : { before: Number(after) });
    const page = await readPage(ports, `${tenant}/workflows/${name}`, query, ({ after, limit }) =>
      pageByPlace(
        limit,
        (count) => ports.definitions.workflowVersions(tenant, name, { ...before(after), limit: count }),
        ({ version }) => String(version),
      ),
    );
    if (page.items.length === 0) {
      throw new Problem(404, 'NOT_FOUND', `there is no workflow ${name}; countersign workflow list shows all`);
    }
    return { status: 200, body: { name, versions: page.items.map(versionView), nextCursor: page.nextCursor } };
  },

  async getWorkflowVersion({ definitions }, { caller: { tenant }, params: { name, version } }) {
    const workflow = /^[1-9]\d{0,5}$/.test(version)
      ? await definitions.workflow(tenant, name, Number(version))
      : undefined;
    if (!workflow) throw new Problem(404, 'NOT_FOUND', `there is no version ${version} of workflow ${name}`);
    const { author: _author, publishedAt: _publishedAt, source = null, ...definition } = workflow;
    return { status: 200, body: { ...versionView({ version: Number(version), workflow }), source, definition } };
  },

  async publishWorkflow(ports, { caller: { tenant, person }, body: file }) {
    const read = await readAndTry(ports, tenant, file);
    if ('problems' in read) throw new Problem(422, 'WORKFLOW_INVALID', inLines(read.problems));
    const { workflow } = read;
    const published = await publishNextVersion(ports, tenant, { ...workflow, source: file }, person);
    if (!published) {
      throw new Problem(409, 'CONFLICT', `others are publishing ${workflow.name} at the same time; try again`);
    }
    const people = await ports.definitions.people(tenant);
    const steps = workflow.steps.map(({ id, tool, with: input }) => ({ id, tool, input }));
    const warnings = [
      ...approverWarnings(workflow, person, people, isoNow(ports.clock)),
      ...(await commandWarnings(ports, tenant, steps)),
    ];
    return { status: published.isNew ? 201 : 200, body: { name: workflow.name, version: published.version, warnings } };
  },

  async validateWorkflow(ports, { caller: { tenant }, body: file }) {
    const read = await readAndTry(ports, tenant, file);
    const problems = 'problems' in read ? read.problems : [];
    return { status: 200, body: { valid: problems.length === 0, problems } };
  },
};

export const inLines = (problems: FileProblem[]) =>
  problems.map(({ line, path, message }) => `line ${line}: ${path ? `${path}: ` : ''}${message}`).join('\n');

/** Also evaluates the expressions, so that one that never ends is refused before a run evaluates it. */
async function readAndTry(
  { expressions, definitions }: WorkflowsPorts,
  tenant: string,
  file: string,
): Promise<{ workflow: Workflow } | { problems: FileProblem[] }> {
  const read = await readCallingWorkflow(definitions, tenant, file);
  if ('problems' in read) return read;
  const problems = await triedWorkflow(expressions, tenant, read.workflow);
  return problems.length === 0 ? read : { problems: problems.map(read.problemAt) };
}

function versionView({ version, workflow }: PublishedVersion) {
  const { name, description = null, author = null, publishedAt = null, steps } = workflow;
  return { name, version, description, author, publishedAt, steps: steps.length };
}
