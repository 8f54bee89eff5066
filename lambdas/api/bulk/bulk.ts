import { Problem } from '../../entry/http.ts';
import { type Ids, isoNow } from '../../entry/ports.ts';
import type { Right } from '../../people/rights.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { Run, RunStatus } from '../../run/run.ts';
import { EXAMINED_MAX } from '../../run/run-store.ts';
import { type Caller, requirePerson, requireRight } from '../authorizer/caller.ts';
import { bulkRoutes } from '../contract/runs/bulk.ts';
import { openCursor, type Paged, sealCursor } from '../paging.ts';
import { parsed } from '../request.ts';
import { router } from '../router.ts';
import { ALL_STATUSES } from '../runs/count-runs.ts';
import { runFilter } from '../runs/run-query.ts';
import { runSummary } from '../runs/run-views.ts';
import { ACTIONS, type Actor, actOnRun } from './act-on-run.ts';
import { BULK_RUNS_MAX, type BulkJob, type BulkJobs, type BulkResult } from './bulk-job.ts';

/** 100 runs for each page, two requests for each: a preview takes about a second. */
const PAGES_MAX = 40;
const SAMPLE_MAX = 10;
const AT_ONCE = 5;
/** After this time a request stops early and returns what it has done. */
const BATCH_TIME_MS = 12_000;

interface BulkPorts extends Actor, Paged {
  jobs: BulkJobs;
  ids: Ids;
  /** How many runs one request acts on. */
  batchRuns: number;
}

/**
 * The client drives the job, one batch with each request, and the row of the job has the matched runs and all results. So
 * nothing runs that nobody waits for: a stopped or crashed client stops the job, and its requester can resume it. A
 * batch whose response or results were lost is repeated, and each run shows by its commits that it was changed before.
 */
export const handleBulk = router<BulkPorts, typeof bulkRoutes>(bulkRoutes, {
  async actOnRuns(ports, { caller, body }) {
    return {
      status: 200,
      body: 'token' in body ? await execute(ports, caller, body.token) : await preview(ports, caller, body),
    };
  },

  async getBulkJob(ports, { caller, params }) {
    const job = await mustGet(ports, caller, params.job);
    const token = job.person === caller.person ? await tokenOf(ports, job) : null;
    const notChanged = job.results.filter(({ outcome }) => outcome !== 'done');
    const { person: requestedBy, createdAt } = job;
    return { status: 200, body: { ...progressOf(job), requestedBy, createdAt, notChanged, token } };
  },
});

type Asked = { action: BulkJob['action']; filter: Parameters<typeof runFilter>[0]; options: Record<string, unknown> };

async function preview(ports: BulkPorts, caller: Caller, { action, filter: asked, options }: Asked) {
  const { route, appliesTo } = ACTIONS[action];
  requireRightFor(caller, action);
  const filter = runFilter(asked);
  if (Object.keys(filter).length === 0) {
    throw new Problem(400, 'BAD_REQUEST', 'filter: name at least one field, e.g. status, automation or errorCode');
  }
  const checked = parsed(route.body, options) as Record<string, unknown>;
  const { runs, leftOut, searchedBackTo } = await matchingRuns(ports, caller.tenant, filter, appliesTo);
  const job: BulkJob = {
    tenant: caller.tenant,
    jobId: ports.ids.next('bulk'),
    action,
    options: checked,
    person: caller.person,
    createdAt: isoNow(ports.clock),
    runs: runs.map(({ runId, seq }) => ({ runId, seq })),
    results: [],
    revision: 0,
  };
  await ports.jobs.create(job);
  return {
    kind: 'preview' as const,
    ...progressOf(job),
    byStatus: ALL_STATUSES.flatMap((status) => {
      const count = runs.filter((run) => run.status === status).length;
      return count > 0 ? [{ status, count }] : [];
    }),
    sample: runs.slice(0, SAMPLE_MAX).map(runSummary),
    leftOut,
    complete: searchedBackTo === undefined,
    ...(searchedBackTo !== undefined && { searchedBackTo }),
    token: await tokenOf(ports, job),
  };
}

function requireRightFor(caller: Caller, action: BulkJob['action']): void {
  const { route } = ACTIONS[action];
  requireRight(caller, route.right as Right);
  if (route.peopleOnly) requirePerson(caller, 'do this');
}

async function matchingRuns(
  { runs }: BulkPorts,
  tenant: string,
  filter: ReturnType<typeof runFilter>,
  appliesTo: readonly RunStatus[],
): Promise<{ runs: Run[]; leftOut: number; searchedBackTo?: string }> {
  const found: Run[] = [];
  let leftOut = 0;
  let after: string | undefined;
  let searchedBackTo: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { items, next, ...searched } = await runs.listRuns(tenant, { ...filter, limit: EXAMINED_MAX, after });
    for (const run of items) {
      if (!appliesTo.includes(run.status)) leftOut += 1;
      else if (found.length < BULK_RUNS_MAX) found.push(run);
      else return { runs: found, leftOut, searchedBackTo: found.at(-1)?.createdAt };
    }
    if (next === undefined) return { runs: found, leftOut };
    after = next;
    searchedBackTo = searched.searchedBackTo ?? items.at(-1)?.createdAt ?? searchedBackTo;
  }
  return { runs: found, leftOut, ...(searchedBackTo !== undefined && { searchedBackTo }) };
}

async function execute(ports: BulkPorts, caller: Caller, token: string) {
  const job = await jobOf(ports, caller, token);
  requireRightFor(caller, job.action);
  const results = await nextResults(ports, caller, job);
  const changed = { ...job, results: [...job.results, ...results] };
  if (results.length > 0 && !(await isStored(ports, job, changed.results))) {
    throw new Problem(
      409,
      'CONFLICT',
      `another request continues the job ${job.jobId}; wait for it, then send the token again`,
    );
  }
  return { kind: 'execution' as const, ...progressOf(changed), results, token };
}

/** Also if an earlier try of this update has stored them, and its reply was lost. */
async function isStored({ jobs }: BulkPorts, job: BulkJob, results: BulkResult[]): Promise<boolean> {
  if (await jobs.update(job, results)) return true;
  const stored = await jobs.get(job.tenant, job.jobId);
  return hashOf(stored?.results ?? []) === hashOf(results);
}

/** The results of the next runs, in their order. */
async function nextResults(ports: BulkPorts, caller: Caller, job: BulkJob): Promise<BulkResult[]> {
  const begunMs = ports.clock.now();
  const batch = job.runs.slice(job.results.length, job.results.length + ports.batchRuns);
  const results: BulkResult[] = [];
  while (results.length < batch.length && ports.clock.now() - begunMs < BATCH_TIME_MS) {
    const some = batch.slice(results.length, results.length + AT_ONCE);
    results.push(...(await Promise.all(some.map((run) => actOnRun(ports, caller, job, run)))));
  }
  return results;
}

function progressOf({ jobId, action, runs, results }: BulkJob) {
  const count = (outcome: BulkResult['outcome']) => results.filter((each) => each.outcome === outcome).length;
  return {
    jobId,
    action,
    total: runs.length,
    processed: results.length,
    counts: { done: count('done'), refused: count('refused'), failed: count('failed') },
    finished: results.length === runs.length,
  };
}

/** Signed for one person, one action with its options, and one set of runs. */
async function tokenOf({ cursorSecret }: BulkPorts, job: BulkJob): Promise<string> {
  return sealCursor(`${job.jobId} ${contentOf(job)}`, listOf(job), await cursorSecret());
}

const listOf = ({ tenant, person }: { tenant: string; person: string }) => `${tenant}/runs/bulk/${person}`;
const contentOf = ({ action, options, runs }: BulkJob): string => hashOf({ action, options, runs });

async function jobOf(ports: BulkPorts, caller: Caller, token: string): Promise<BulkJob> {
  const secret = await ports.cursorSecret();
  const [jobId = '', content] = opened(token, listOf(caller), secret).split(' ');
  const job = await mustGet(ports, caller, jobId);
  if (contentOf(job) !== content) throw badToken();
  return job;
}

function opened(token: string, list: string, secret: string): string {
  try {
    return openCursor(token, list, secret);
  } catch {
    throw badToken();
  }
}

const badToken = () =>
  new Problem(400, 'BAD_CURSOR', 'the token is not one that a preview gave you; request a preview and send its token');

async function mustGet({ jobs }: BulkPorts, { tenant }: Caller, jobId: string): Promise<BulkJob> {
  const job = /^bulk_[0-9a-f]+$/.test(jobId) ? await jobs.get(tenant, jobId) : undefined;
  if (job) return job;
  throw new Problem(404, 'NOT_FOUND', `there is no bulk job ${jobId}; jobs are stored for 7 days`);
}
