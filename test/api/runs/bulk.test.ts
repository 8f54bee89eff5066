import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { handleBulk } from '../../../lambdas/api/bulk/bulk.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { later } from '../../../lambdas/run/lease.ts';
import { assignRun } from '../../../lambdas/run-changes/control/assign-run.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { MemoryBulkJobs } from '../../fakes/memory/memory-bulk-jobs.ts';
import { accepted } from '../../fakes/story.ts';
import { LABEL } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';

let shop: Workshop;
let jobs: MemoryBulkJobs;
let made = 0;
beforeEach(() => {
  shop = new Workshop();
  jobs = new MemoryBulkJobs();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const ids = { next: (prefix: string) => `${prefix}_f${(++made).toString(16).padStart(7, '0')}` };

async function send(body: object, as: { tenant?: string; person?: string; role?: string } = {}, job?: string) {
  const caller = { tenant: 'acme', person: 'oscar', role: 'operator', ...as };
  const event = {
    routeKey: job === undefined ? 'POST /api/v1/runs/bulk' : 'GET /api/v1/runs/bulk/{job}',
    rawPath: '/api/v1/runs/bulk',
    headers: {},
    pathParameters: { job },
    body: JSON.stringify(body),
    requestContext: { authorizer: { lambda: caller } },
  } as unknown as HttpEvent;
  const { runs, definitions, queue, clock, log } = shop;
  const starter = { runs, definitions, queue, clock, log, ids, expressions: shop.worker.expressions };
  const ports = {
    ...starter,
    changer: { ...shop.worker, ids },
    starter,
    jobs,
    batchRuns: 20,
    cursorSecret: async () => 'secret',
  };
  return JSON.parse((await handleBulk(ports, event)).body ?? '');
}

async function queued(count: number, tenant = 'acme'): Promise<string[]> {
  await shop.definitions.publishWorkflow(tenant, parseWorkflow(LABEL, 'label.yaml'), 1);
  const runIds = Array.from({ length: count }, (_, index) => `run_${(index + 1).toString(16).padStart(32, '0')}`);
  for (const [index, runId] of runIds.entries()) {
    await shop.runs.ingest(accepted({ tenant, runId, at: later(STORY_BEGINS_AT, index), key: runId }).ingest);
  }
  return runIds;
}
const CANCEL = { action: 'cancel', filter: { status: 'queued' }, options: { reason: 'wrong rule' } };
const statuses = (runIds: string[]) => runIds.map((runId) => shop.runs.inside.run('acme', runId)?.status);
const problem = (status: number, text = '') =>
  expect.objectContaining({ status, message: expect.stringContaining(text) });

describe('a bulk action', () => {
  it('is previewed first, which changes nothing, and then acts on exactly these runs, batch by batch', async () => {
    const runIds = await queued(45);
    const preview = await send(CANCEL);
    expect(preview).toMatchObject({
      total: 45,
      processed: 0,
      complete: true,
      leftOut: 0,
      byStatus: [{ status: 'queued', count: 45 }],
    });
    expect(preview.sample.map(({ runId }: { runId: string }) => runId)).toEqual(runIds.toReversed().slice(0, 10));
    expect(new Set(statuses(runIds))).toEqual(new Set(['queued']));
    // A run that matches later is not in the set.
    const late = accepted({ runId: `run_${'e'.repeat(32)}`, key: 'late' });
    await shop.runs.ingest(late.ingest);
    const { token } = preview;
    const progress = [];
    for (let finished = false; !finished; ) {
      const page = await send({ token });
      progress.push([page.processed, page.counts.done, page.results.length]);
      finished = page.finished;
    }
    expect(progress).toEqual([
      [20, 20, 20],
      [40, 40, 20],
      [45, 45, 5],
    ]);
    expect(new Set(statuses(runIds))).toEqual(new Set(['canceled']));
    expect(shop.runs.inside.run('acme', runIds[0] ?? '')?.cancellation).toMatchObject({
      actor: 'oscar',
      reason: 'wrong rule',
    });
    expect(statuses([late.run.runId])).toEqual(['queued']);
  });

  it('is repeated without effect when its results were lost, and resumed by its id', async () => {
    const runIds = await queued(3);
    const { token, jobId } = await send(CANCEL);
    jobs.lost = 1;
    await expect(send({ token })).rejects.toThrow('crashed');
    const commits = () => runIds.map((runId) => shop.runs.inside.commits('acme', runId).length);
    const before = commits();
    expect(await send({}, {}, jobId)).toMatchObject({ processed: 0, finished: false, requestedBy: 'oscar', token });
    expect(await send({ token })).toMatchObject({ finished: true, counts: { done: 3, refused: 0, failed: 0 } });
    expect(commits()).toEqual(before);
    expect(await send({ token })).toMatchObject({ finished: true, results: [] });
  });

  it('acts on each run once if two requests continue it at the same time, and on runs that have changed since the preview', async () => {
    const runIds = await queued(4);
    const { token, jobId } = await send(CANCEL);
    await shop.work({ tenant: 'acme', runId: runIds[0] ?? '' });
    await assignRun(shop.worker, { tenant: 'acme', runId: runIds[1] ?? '' }, 'olivia', 'olivia');
    await Promise.allSettled([send({ token }), send({ token }), send({ token })]);
    const { counts, notChanged } = await send({}, {}, jobId);
    expect(counts).toEqual({ done: 3, refused: 1, failed: 0 });
    expect(notChanged).toMatchObject([{ runId: runIds[0], reason: expect.stringContaining('has ended as succeeded') }]);
    const stops = runIds.map((runId) =>
      shop.runs.inside
        .commits('acme', runId)
        .filter(({ events }) => events.some((event) => event.type === 'run.stop_requested' && event.kind === 'cancel')),
    );
    expect(stops.map(({ length }) => length)).toEqual([0, 1, 1, 1]);
  });

  it('counts a run as changed if the reply to its commit was lost', async () => {
    const [runId = ''] = await queued(1);
    const { token } = await send(CANCEL);
    const commit = shop.runs.commit.bind(shop.runs);
    vi.spyOn(shop.runs, 'commit').mockImplementationOnce(async (change) => {
      await commit(change);
      throw new Error('the reply was lost');
    });
    expect(await send({ token })).toMatchObject({ counts: { done: 1, refused: 0, failed: 0 } });
    expect(statuses([runId])).toEqual(['canceled']);
  });

  it('names the reason for each run that was not changed, and changes the others', async () => {
    const [ended = '', other = ''] = await queued(2);
    const { token, jobId } = await send(CANCEL);
    const { token: first } = await send({ ...CANCEL, filter: { until: STORY_BEGINS_AT } }, { person: 'olivia' });
    await send({ token: first }, { person: 'olivia' });
    const { results, counts } = await send({ token });
    expect(counts).toEqual({ done: 1, refused: 1, failed: 0 });
    const refused = {
      runId: ended,
      outcome: 'refused',
      reason: 'the run has ended as canceled; it can no longer be changed',
    };
    expect(results).toEqual([{ runId: other, outcome: 'done' }, refused]);
    expect((await send({}, {}, jobId)).notChanged).toEqual([refused]);
  });

  it('reruns ended runs, each once', async () => {
    const message = await shop.begin(LABEL);
    await shop.finish(message);
    const { token, total } = await send({ action: 'rerun', filter: { status: 'succeeded' } });
    expect(total).toBe(1);
    jobs.lost = 1;
    await expect(send({ token })).rejects.toThrow('crashed');
    await send({ token });
    const reruns = [...shop.runs.inside.runs()].filter((run) => run.runId !== message.runId);
    expect(reruns).toHaveLength(1);
  });

  it.each([
    [{ action: 'cancel', filter: {} }, {}, 400, 'name at least one field'],
    [{ action: 'cancel', filter: { overdue: 'false' } }, {}, 400, 'name at least one field'],
    [{ action: 'cancle', filter: { status: 'queued' } }, {}, 400, 'did you mean "cancel"?'],
    [{ action: 'cancel', filter: { automatoin: 'x' } }, {}, 400, 'did you mean `automation`?'],
    [{ ...CANCEL, options: { raeson: 'x' } }, {}, 400, 'did you mean `reason`?'],
    [CANCEL, { role: 'approver' }, 403, 'runs:control'],
    [{ token: 'invented' }, {}, 400, 'request a preview'],
  ])('refuses %j', async (body, as, status, text) => {
    const [runId = ''] = await queued(1);
    await expect(send(body, as)).rejects.toEqual(problem(status, text));
    expect(statuses([runId])).toEqual(['queued']);
  });

  it('belongs to one person of one tenant', async () => {
    await queued(1);
    const { token, jobId } = await send(CANCEL);
    await expect(send({ token }, { person: 'olivia' })).rejects.toEqual(problem(400, 'request a preview'));
    await expect(send({ token }, { tenant: 'globex' })).rejects.toEqual(problem(400, 'request a preview'));
    await expect(send({}, { tenant: 'globex' }, jobId)).rejects.toEqual(problem(404));
    expect((await send({}, { person: 'olivia' }, jobId)).token).toBeNull();
  });

  it('takes at most 1,000 runs, and leaves out those that cannot take it', async () => {
    await queued(1_005);
    const preview = await send(CANCEL);
    expect(preview).toMatchObject({ total: 1_000, complete: false });
    expect(await send({ action: 'rerun', filter: { status: 'queued' } })).toMatchObject({ total: 0, leftOut: 1_005 });
  });
});
