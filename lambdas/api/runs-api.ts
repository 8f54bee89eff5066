import * as z from 'zod';
import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Commit } from '../run/commit.ts';
import { RunStatus } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import { receiptKeyOf, type Step } from '../run/step.ts';
import { type Answers, byRoute } from './answers.ts';
import type { Caller } from './api-keys.ts';
import { PAGE_MAX, type Paged, PageQuery, readPage } from './paging.ts';
import { parseQuery } from './request.ts';
import { commitView, runDetail, runSummary } from './run-views.ts';

const ListQuery = PageQuery.extend({ status: RunStatus.optional() });
const EventsQuery = z.strictObject({
  since: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_MAX),
});

export interface RunsApi extends Paged {
  runs: Pick<RunStore, 'listRuns' | 'load' | 'listCommits' | 'receipts' | 'approvals' | 'evidence'>;
  definitions: Pick<Definitions, 'workflow'>;
}

const ANSWERS: Answers<RunsApi, 'runs'> = {
  'GET /api/v1/runs': list,
  'GET /api/v1/runs/{id}': show,
  'GET /api/v1/runs/{id}/events': events,
};

export const answerRuns = byRoute(ANSWERS);

async function list(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const { status, ...wanted } = parseQuery(ListQuery, event);
  // A place belongs to one list: with another filter it would point nowhere.
  const page = await readPage(api, `${tenant}/${status ?? 'all'}`, wanted, (place) =>
    api.runs.listRuns(tenant, { status, ...place }),
  );
  return json(200, { runs: page.items.map(runSummary), nextCursor: page.nextCursor });
}

async function show(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const { run, steps } = await mustLoad(api, tenant, event);
  const { runId } = run;
  const [workflow, commits, receipts, evidence] = await Promise.all([
    api.definitions.workflow(tenant, run.workflow.name, run.workflow.version),
    api.runs.listCommits(tenant, runId, { after: 0, limit: PAGE_MAX }),
    api.runs.receipts(
      tenant,
      steps.flatMap((step) => receiptKeyOf(step) ?? []),
    ),
    api.runs.evidence(tenant, runId),
  ]);
  receipts.sort((a, b) => a.stepIndex - b.stepIndex);
  const asked = approvalIdsOf(steps, commits);
  const approvals = await api.runs.approvals(tenant, runId, asked);
  approvals.sort((a, b) => asked.indexOf(a.approvalId) - asked.indexOf(b.approvalId));
  return json(200, runDetail({ run, steps, workflow, commits, receipts, approvals, evidence }));
}

/** What the shown commits asked for, and what steps wait for or rest on now: oldest first. */
function approvalIdsOf(steps: Step[], commits: Commit[]): string[] {
  const told = commits
    .flatMap(({ events }) => events)
    .flatMap((event) => (event.type === 'approval.requested' ? [event.approvalId] : []));
  const current = steps.flatMap((step) =>
    step.status === 'waiting_approval' ? [step.approvalId] : (step.governed?.approvalId ?? []),
  );
  return [...new Set([...told, ...current])];
}

async function events(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const { since, limit } = parseQuery(EventsQuery, event);
  const { run } = await mustLoad(api, tenant, event);
  const commits = await api.runs.listCommits(tenant, run.runId, { after: since, limit });
  const next = commits.at(-1)?.seq ?? since;
  return json(200, { status: run.status, commits: commits.map(commitView), next, more: next < run.seq });
}

async function mustLoad(api: RunsApi, tenant: string, event: HttpEvent) {
  const runId = event.pathParameters?.id ?? '';
  const loaded = /^run_[0-9a-f]+$/.test(runId) ? await api.runs.load(tenant, runId) : undefined;
  // Another tenant's run and one that never was answer alike.
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  return loaded;
}
