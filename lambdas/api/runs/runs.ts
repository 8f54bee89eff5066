import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { Commit } from '../../run/commit.ts';
import { RunStatus } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import { receiptKeyOf } from '../../run/step.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { PAGE_MAX, type Paged, PageQuery, readPage } from '../paging/paging.ts';
import { parseQuery } from '../request.ts';
import { cutToFit } from '../response-size.ts';
import { byRoute, type Handlers } from '../router.ts';
import { approvalIdsOf, type StepPage, stepPage, stepsOf } from './run-steps.ts';
import { commitView, receiptView, runDetail, runSummary, shownStep } from './run-views.ts';

/** Beside the steps, which take the most of an answer. */
const COMMITS_SHOWN_MAX_BYTES = 1_500_000;
const ListQuery = PageQuery.extend({ status: RunStatus.optional() });
const EventsQuery = z.strictObject({
  since: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_MAX),
});

export interface RunsApi extends Paged {
  runs: Pick<RunStore, 'listRuns' | 'load' | 'listCommits' | 'receipts' | 'approvals' | 'evidence'>;
  definitions: Pick<Definitions, 'workflow'>;
}

const HANDLERS: Handlers<RunsApi, 'runs'> = {
  'GET /api/v1/runs': list,
  'GET /api/v1/runs/{id}': show,
  'GET /api/v1/runs/{id}/events': events,
  'GET /api/v1/runs/{id}/steps': steps,
  'GET /api/v1/runs/{id}/steps/{index}': step,
};

export const handleRuns = byRoute(HANDLERS);

async function list(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const { status, ...wanted } = parseQuery(ListQuery, event);
  // A place belongs to one list: with another filter it would point nowhere.
  const page = await readPage(api, `${tenant}/${status ?? 'all'}`, wanted, (place) =>
    api.runs
      .listRuns(tenant, { status, ...place })
      .then((found) => cutToFit(found, ({ createdAt, runId }) => `${createdAt} ${runId}`)),
  );
  return json(200, { runs: page.items.map(runSummary), nextCursor: page.nextCursor });
}

async function show(api: RunsApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const { run, shown, commits } = await shownRun(api, caller, event);
  const [page, evidence] = await Promise.all([
    readSteps(api, shown, { limit: PAGE_MAX }),
    api.runs.evidence(run.tenant, run.runId),
  ]);
  return json(
    200,
    runDetail({ run, rows: shown.rows, page, commits: thatFit(commits, COMMITS_SHOWN_MAX_BYTES), evidence }),
  );
}

/** More steps than the run itself shows. */
async function steps(api: RunsApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const query = parseQuery(PageQuery, event);
  const { shown } = await shownRun(api, caller, event);
  const { steps, receipts, approvals, nextStepsCursor: nextCursor } = await readSteps(api, shown, query);
  return json(200, { steps, receipts, approvals, nextCursor });
}

/** One step with every value in full. */
async function step(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const { run, steps: rows } = await mustLoad(api, tenant, event);
  const wanted = event.pathParameters?.index ?? '';
  const row = rows.find(({ index }) => String(index) === wanted);
  if (!row)
    throw new Problem(404, 'NOT_FOUND', `the run has reached no step ${wanted}; steps are named by their index`);
  const key = receiptKeyOf(row);
  const receipts = key === undefined ? [] : await api.runs.receipts(tenant, [key]);
  const commits = await api.runs.listCommits(tenant, run.runId, { after: 0, limit: PAGE_MAX });
  const approvals = approvalIdsOf([row], new Set([row.id]), commits);
  return json(200, { step: shownStep(row), receipt: receipts.map(receiptView)[0] ?? null, approvals });
}

/** A run as its steps are shown, with its first commits. */
async function shownRun(api: RunsApi, { tenant }: Caller, event: HttpEvent) {
  const { run, steps: rows } = await mustLoad(api, tenant, event);
  const [workflow, commits] = await Promise.all([
    api.definitions.workflow(tenant, run.workflow.name, run.workflow.version),
    api.runs.listCommits(tenant, run.runId, { after: 0, limit: PAGE_MAX }),
  ]);
  return { run, commits, shown: { tenant, runId: run.runId, steps: stepsOf(workflow, rows), rows, commits } };
}

async function readSteps(
  api: RunsApi,
  shown: Parameters<typeof stepPage>[1],
  query: { limit: number; cursor?: string },
): Promise<StepPage & { nextStepsCursor: string | null }> {
  const list = `${shown.tenant}/runs/${shown.runId}/steps`;
  const { items, nextCursor } = await readPage(api, list, query, async (place) => {
    const { next, ...page } = await stepPage(api, shown, place);
    return { items: [page], ...(next !== undefined && { next }) };
  });
  const [page] = items;
  return { steps: [], receipts: [], approvals: [], ...page, nextStepsCursor: nextCursor };
}

async function events(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const { since, limit } = parseQuery(EventsQuery, event);
  const { run } = await mustLoad(api, tenant, event);
  const commits = thatFit(await api.runs.listCommits(tenant, run.runId, { after: since, limit }));
  const next = commits.at(-1)?.seq ?? since;
  return json(200, { status: run.status, commits: commits.map(commitView), next, more: next < run.seq });
}

const thatFit = (commits: Commit[], maxBytes?: number): Commit[] =>
  cutToFit({ items: commits }, ({ seq }) => String(seq), maxBytes).items;

async function mustLoad(api: RunsApi, tenant: string, event: HttpEvent) {
  const runId = event.pathParameters?.id ?? '';
  const loaded = /^run_[0-9a-f]+$/.test(runId) ? await api.runs.load(tenant, runId) : undefined;
  // Another tenant's run and one that never was answer alike.
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  return loaded;
}
