import { Problem } from '../../entry/http.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import type { RunStore } from '../../run/run-store.ts';
import { EXECUTION_STATE } from '../../run/statuses/execution-state.ts';
import { receiptKeyOf } from '../../run/step.ts';
import { workflowOfRun } from '../../workflow/action-workflow.ts';
import { withRequestedMode } from '../../workflow/requested-mode.ts';
import { actionView } from '../actions/action-view.ts';
import { actionsOfRun, mustLoadAction } from '../actions/list-actions.ts';
import type { Contract } from '../contract/index.ts';
import { actionRoutes } from '../contract/runs/actions.ts';
import { executionReadRoutes } from '../contract/runs/executions.ts';
import { runRoutes } from '../contract/runs/runs.ts';
import { outputRoutes } from '../contract/runs/steps.ts';
import { PAGE_MAX } from '../contract/schemas.ts';
import { executionEvents } from '../executions/execution-events.ts';
import { executionView } from '../executions/execution-view.ts';
import { lastOutput } from '../executions/last-output.ts';
import { type Paged, readPage } from '../paging.ts';
import { cutToFit } from '../response-size.ts';
import { router } from '../router.ts';
import { countRuns } from './count-runs.ts';
import { runFilter } from './run-query.ts';
import { approvalIdsOf, type StepPage, stepPage, stepsOf } from './run-steps.ts';
import { runDetail, runSummary } from './run-views.ts';
import { type OutputPorts, stepOutput } from './step-output.ts';

/** Commits share a response with the steps, which need most of it. */
const COMMITS_MAX_BYTES = 1_500_000;

/** A run that is repeated more often than this is repeated by a program; its runs are in the list of runs. */
const RERUNS_SHOWN_MAX = 50;

interface RunsPorts extends Paged, OutputPorts {
  /** Where people see a trace, with `{traceId}` or `{xrayTraceId}`. */
  traceUrl?: string | undefined;
  runs: Pick<
    RunStore,
    'listRuns' | 'countRuns' | 'load' | 'listCommits' | 'receipts' | 'approvals' | 'evidence' | 'reruns'
  >;
  definitions: Pick<Definitions, 'workflow'>;
}

const routes = { ...runRoutes, ...outputRoutes, ...actionRoutes, ...executionReadRoutes };

export const handleRuns = router<RunsPorts, Contract['runs']>(routes, {
  async listRuns(ports, { caller: { tenant }, query: { limit, cursor, counts, ...query } }) {
    const filter = runFilter(query);
    let searchedBackTo: string | undefined;
    const [page, counted] = await Promise.all([
      // A cursor is valid for one filter only.
      readPage(ports, `${tenant}/runs/${canonicalJson(filter)}`, { limit, cursor }, async (place) => {
        const found = await ports.runs.listRuns(tenant, { ...filter, ...place });
        searchedBackTo = found.searchedBackTo;
        return cutToFit(found, ({ runId }) => found.places.get(runId) ?? '');
      }),
      counts === 'true' ? countRuns(ports.runs, tenant, filter) : undefined,
    ]);
    return {
      status: 200,
      body: {
        runs: page.items.map(runSummary),
        nextCursor: page.nextCursor,
        ...(searchedBackTo !== undefined && { searchedBackTo }),
        ...(counted && { counts: counted }),
      },
    };
  },

  async getRun(ports, { caller, params }) {
    const { tenant } = caller;
    const { run, shown, commits } = await loadWithSteps(ports, tenant, params.id);
    const [page, evidence, reruns] = await Promise.all([
      readSteps(ports, shown, { limit: PAGE_MAX }),
      ports.runs.evidence(tenant, run.runId),
      ports.runs.reruns(tenant, run.runId, RERUNS_SHOWN_MAX),
    ]);
    const fitting = cutCommits(commits, COMMITS_MAX_BYTES);
    return {
      status: 200,
      body: runDetail({
        ...{ run, rows: shown.rows, page, commits: fitting, evidence, reruns, caller },
        traceUrl: ports.traceUrl,
      }),
    };
  },

  async listRunEvents(ports, { caller: { tenant }, params, query: { since, limit } }) {
    const { run } = await mustLoad(ports, tenant, params.id);
    const commits = cutCommits(await ports.runs.listCommits(tenant, run.runId, { after: since, limit }));
    const next = commits.at(-1)?.seq ?? since;
    return { status: 200, body: { status: run.status, commits, next, more: next < run.seq } };
  },

  async listRunSteps(ports, { caller: { tenant }, params, query }) {
    const { shown } = await loadWithSteps(ports, tenant, params.id);
    const { steps, receipts, approvals, nextStepsCursor: nextCursor } = await readSteps(ports, shown, query);
    return { status: 200, body: { steps, receipts, approvals, nextCursor } };
  },

  async listRunActions(ports, { caller: { tenant }, params, query }) {
    const loaded = await mustLoad(ports, tenant, params.id);
    const list = `${tenant}/runs/${loaded.run.runId}/actions`;
    const { items, nextCursor } = await readPage(ports, list, query, (place) => actionsOfRun(ports, loaded, place));
    return { status: 200, body: { actions: items, nextCursor } };
  },

  async getAction(ports, { caller: { tenant }, params }) {
    return { status: 200, body: actionView(await mustLoadAction(ports, tenant, params.id)) };
  },

  async getStepOutput(ports, { caller: { tenant }, params, query }) {
    const loaded = await mustLoad(ports, tenant, params.id);
    return { status: 200, body: await stepOutput(ports, loaded, { step: params.index, ...query }) };
  },

  async getExecution(ports, { caller: { tenant }, params, query }) {
    const { run, workflow, shown } = await loadWithSteps(ports, tenant, params.id);
    const page = await readSteps(ports, shown, { limit: PAGE_MAX, ...query });
    const mode = workflow && withRequestedMode(workflow, run.request?.validationMode).validation?.mode;
    const output = await lastOutput(ports, run, shown.rows);
    return { status: 200, body: executionView({ run, page, steps: shown.steps, mode: mode ?? null, output }) };
  },

  async listExecutionEvents(ports, { caller: { tenant }, params, query: { since, limit } }) {
    const { run, steps } = await mustLoad(ports, tenant, params.id);
    const commits = cutCommits(await ports.runs.listCommits(tenant, run.runId, { after: since, limit }));
    const next = commits.at(-1)?.seq ?? since;
    const events = executionEvents(run.runId, commits, steps);
    return { status: 200, body: { state: EXECUTION_STATE[run.status], events, next, more: next < run.seq } };
  },

  async getRunStep(ports, { caller: { tenant }, params }) {
    const { run, steps } = await mustLoad(ports, tenant, params.id);
    const step = steps.find(({ index }) => String(index) === params.index);
    if (!step) throw new Problem(404, 'NOT_FOUND', `the run has reached no step with the index ${params.index}`);
    const key = receiptKeyOf(step);
    const [receipt = null] = key === undefined ? [] : await ports.runs.receipts(tenant, [key]);
    const commits = await ports.runs.listCommits(tenant, run.runId, { after: 0, limit: PAGE_MAX });
    const approvals = approvalIdsOf([step], new Set([step.id]), commits);
    return { status: 200, body: { step, receipt, approvals } };
  },
});

async function loadWithSteps(ports: RunsPorts, tenant: string, runId: string) {
  const { run, trigger, steps: rows } = await mustLoad(ports, tenant, runId);
  const [workflow, commits] = await Promise.all([
    workflowOfRun(ports.definitions, run, trigger),
    ports.runs.listCommits(tenant, run.runId, { after: 0, limit: PAGE_MAX }),
  ]);
  // A run that undoes the writes of another run performs no step of its workflow.
  const steps = stepsOf(run.rollbackOf ? undefined : workflow, rows);
  return { run, workflow, commits, shown: { tenant, runId: run.runId, steps, rows, commits } };
}

async function readSteps(
  ports: RunsPorts,
  shown: Parameters<typeof stepPage>[1],
  query: { limit: number; cursor?: string },
): Promise<StepPage & { nextStepsCursor: string | null }> {
  const list = `${shown.tenant}/runs/${shown.runId}/steps`;
  const { items, nextCursor } = await readPage(ports, list, query, async (place) => {
    const { next, ...page } = await stepPage(ports, shown, place);
    return { items: [page], ...(next !== undefined && { next }) };
  });
  const [page] = items;
  return { steps: [], receipts: [], approvals: [], ...page, nextStepsCursor: nextCursor };
}

const cutCommits = (commits: Commit[], maxBytes?: number): Commit[] =>
  cutToFit({ items: commits }, ({ seq }) => String(seq), maxBytes).items;

/** The response is the same for a run of another tenant and for a run that does not exist. */
async function mustLoad({ runs }: RunsPorts, tenant: string, runId: string) {
  const loaded = await runs.load(tenant, runId);
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  return loaded;
}
