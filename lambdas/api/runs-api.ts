import * as z from 'zod';
import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Commit } from '../run/commit.ts';
import { RunStatus } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import { receiptKeyOf, type Step } from '../run/step.ts';
import type { Caller } from './api-keys.ts';
import { callerOf } from './caller.ts';
import { openCursor, sealCursor } from './cursor.ts';
import { parseQuery } from './request.ts';
import { commitView, runDetail, runSummary } from './run-views.ts';

const PAGE_MAX = 100;
const PAGE_DEFAULT = 25;

const Limit = z.coerce.number().int().min(1).max(PAGE_MAX);
const ListQuery = z.strictObject({
  status: RunStatus.optional(),
  limit: Limit.default(PAGE_DEFAULT),
  cursor: z.string().optional(),
});
const EventsQuery = z.strictObject({
  since: z.coerce.number().int().min(0).default(0),
  limit: Limit.default(PAGE_MAX),
});

export interface RunsApi {
  runs: Pick<RunStore, 'listRuns' | 'load' | 'listCommits' | 'receipts' | 'approval' | 'evidence'>;
  definitions: Pick<Definitions, 'workflow'>;
  cursorSecret: () => Promise<string>;
}

/** Routes of `GET /api/v1/runs…`, by the names API Gateway knows them. */
export function answerRuns(api: RunsApi, event: HttpEvent): Promise<HttpAnswer> {
  const caller = callerOf(event);
  const runId = event.pathParameters?.id ?? '';
  switch (event.routeKey) {
    case 'GET /api/v1/runs':
      return list(api, caller, event);
    case 'GET /api/v1/runs/{id}':
      return show(api, caller, runId);
    case 'GET /api/v1/runs/{id}/events':
      return events(api, caller, runId, event);
    default:
      throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  }
}

async function list(api: RunsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const { status, limit, cursor } = parseQuery(ListQuery, event);
  const secret = await api.cursorSecret();
  // The place belongs to one list: with another filter it would point nowhere.
  const list = `${tenant}/${status ?? 'all'}`;
  const page = await api.runs.listRuns(tenant, {
    status,
    limit,
    ...(cursor !== undefined && { after: openCursor(cursor, list, secret) }),
  });
  return json(200, {
    runs: page.items.map(runSummary),
    nextCursor: page.next === undefined ? null : sealCursor(page.next, list, secret),
  });
}

async function show(api: RunsApi, { tenant }: Caller, runId: string): Promise<HttpAnswer> {
  const { run, steps } = await mustLoad(api, tenant, runId);
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
  const asked = approvalIdsOf(steps, commits).map((approvalId) => api.runs.approval(tenant, runId, approvalId));
  const approvals = (await Promise.all(asked)).filter((approval) => approval !== undefined);
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

async function events(api: RunsApi, { tenant }: Caller, runId: string, event: HttpEvent): Promise<HttpAnswer> {
  const { since, limit } = parseQuery(EventsQuery, event);
  const { run } = await mustLoad(api, tenant, runId);
  const commits = await api.runs.listCommits(tenant, runId, { after: since, limit });
  const next = commits.at(-1)?.seq ?? since;
  return json(200, { status: run.status, commits: commits.map(commitView), next, more: next < run.seq });
}

async function mustLoad(api: RunsApi, tenant: string, runId: string) {
  const loaded = /^run_[0-9a-f]+$/.test(runId) ? await api.runs.load(tenant, runId) : undefined;
  // Another tenant's run and one that never was answer alike.
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  return loaded;
}
