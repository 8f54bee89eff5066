import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { handleRuns } from '../../../lambdas/api/runs/runs.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { later } from '../../../lambdas/run/lease.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { outputPorts } from '../../fakes/memory/memory-output.ts';
import { accepted } from '../../fakes/story.ts';
import { LABEL, TRIAGE } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

interface Asked {
  id?: string;
  query?: Record<string, string>;
  tenant?: string;
  caller?: unknown;
}

async function get(route: string, { id = '', query, tenant = 'acme', caller }: Asked = {}) {
  const event = {
    routeKey: `GET ${route}`,
    rawPath: route,
    pathParameters: { id },
    queryStringParameters: query,
    requestContext: { authorizer: { lambda: caller ?? { tenant, person: 'olivia', role: 'auditor' } } },
  } as unknown as HttpEvent;
  const api = {
    runs: shop.runs,
    definitions: shop.definitions,
    cursorSecret: async () => 'secret',
    ...outputPorts(shop.clock),
  };
  const answer = await handleRuns(api, event);
  return { status: answer.statusCode, body: JSON.parse(answer.body ?? '') };
}
const LIST = '/api/v1/runs';
const ONE = '/api/v1/runs/{id}';
const EVENTS = '/api/v1/runs/{id}/events';
const problem = (status: number) => expect.objectContaining({ status });

async function queued(count: number, tenant = 'acme'): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `run_${(index + 1).toString(16).padStart(8, '0')}`);
  for (const [index, runId] of ids.entries()) {
    await shop.runs.ingest(accepted({ tenant, runId, at: later(STORY_BEGINS_AT, index) }).ingest);
  }
  return ids;
}

describe('a run id', () => {
  it('may be the first characters, with or without run_, if one run starts so', async () => {
    for (const runId of ['run_ab12', 'run_ab34', 'run_ac00']) {
      await shop.runs.ingest(accepted({ runId, key: runId }).ingest);
    }
    expect((await get(EVENTS, { id: 'run_ac' })).status).toBe(200);
    expect((await get(ONE, { id: 'ab3' })).body.runId).toBe('run_ab34');
    await expect(get(ONE, { id: 'ab' })).rejects.toEqual(
      expect.objectContaining({
        status: 409,
        code: 'AMBIGUOUS',
        message: 'several runs start with run_ab: run_ab12, run_ab34; give more of the id',
      }),
    );
    await expect(get(ONE, { id: 'ad' })).rejects.toEqual(problem(404));
    await expect(get(ONE, { id: 'run_ac00x' })).rejects.toEqual(problem(404));
    await expect(get(ONE, { id: 'ac', tenant: 'globex' })).rejects.toEqual(problem(404));
  });
});

describe('the list of runs', () => {
  it('shows the newest first, page by page, each run once', async () => {
    const ids = await queued(5);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const query: Record<string, string> = { limit: '2', ...(cursor !== undefined && { cursor }) };
      const { body } = await get(LIST, { query });
      seen.push(...body.runs.map(({ runId }: { runId: string }) => runId));
      cursor = body.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual(ids.toReversed());
  });

  it('shows a tenant its own runs only, and accepts no cursor of another tenant', async () => {
    await queued(3);
    const { body } = await get(LIST, { query: { limit: '1' } });
    expect((await get(LIST, { tenant: 'globex' })).body.runs).toEqual([]);
    const stolen = get(LIST, { tenant: 'globex', query: { cursor: body.nextCursor } });
    await expect(stolen).rejects.toEqual(problem(400));
    const otherList = get(LIST, { query: { status: 'queued', cursor: body.nextCursor } });
    await expect(otherList).rejects.toEqual(problem(400));
  });

  it('6.11 the runs of an automation are those of this automation and this tenant', async () => {
    const run = (runId: string, tenant: string, automation: string) =>
      shop.runs.ingest(accepted({ runId, tenant, automation, key: runId }).ingest);
    await run('run_a', 'acme', 'disks');
    await run('run_b', 'acme', 'login');
    await run('run_c', 'globex', 'disks');
    const { body } = await get(LIST, { query: { automation: 'disks' } });
    expect(body.runs.map(({ runId }: { runId: string }) => runId)).toEqual(['run_a']);
  });

  it('filters by what a query names, counts by status, and searches titles further back with the cursor', async () => {
    for (const [index, title] of ['Disk full', 'Login fails', 'Disk slow'].entries()) {
      const runId = `run_${index}`;
      const at = later(STORY_BEGINS_AT, index * 1000);
      const automation = index === 1 ? 'login' : 'disks';
      await shop.runs.ingest(accepted({ runId, at, title, automation, key: runId }).ingest);
    }
    const found = async (query: Record<string, string>) => {
      const { body } = await get(LIST, { query });
      return body.runs.map(({ runId }: { runId: string }) => runId);
    };
    expect(await found({ automation: 'disks' })).toEqual(['run_2', 'run_0']);
    expect(await found({ text: 'disk', until: STORY_BEGINS_AT })).toEqual(['run_0']);
    expect(await found({ subject: 'octo-org/payments#7', since: later(STORY_BEGINS_AT, 1500) })).toEqual(['run_2']);
    expect(await found({ overdue: 'true' })).toEqual([]);
    expect(await found({ overdue: 'false', workflow: 'label-new-issue', limit: '1' })).toEqual(['run_2']);
    const counts = async (query: Record<string, string>) =>
      (await get(LIST, { query: { ...query, counts: 'true' } })).body.counts;
    expect(await counts({})).toEqual({ byStatus: [{ status: 'queued', count: 3 }] });
    expect(await counts({ status: 'queued', since: later(STORY_BEGINS_AT, 1) })).toEqual({
      byStatus: [{ status: 'queued', count: 2 }],
    });
    expect(await counts({ automation: 'disks' })).toEqual({ byStatus: [{ status: 'queued', count: 2 }] });
  });

  it('says how far it has searched and counted when few runs match', async () => {
    await queued(720);
    const query = { workflow: 'label-new-issue', status: 'canceled', counts: 'true' };
    const { body } = await get(LIST, { query });
    expect(body).toMatchObject({
      runs: [],
      searchedBackTo: later(STORY_BEGINS_AT, 620),
      counts: { byStatus: [], countedBackTo: later(STORY_BEGINS_AT, 220) },
    });
    const page = await get(LIST, { query: { ...query, cursor: body.nextCursor } });
    expect(page.body.searchedBackTo).toBe(later(STORY_BEGINS_AT, 520));
  });

  it('filters by status', async () => {
    const message = await shop.begin(LABEL);
    await shop.work(message);
    expect((await get(LIST, { query: { status: 'succeeded' } })).body.runs).toHaveLength(1);
    expect((await get(LIST, { query: { status: 'queued' } })).body.runs).toHaveLength(0);
  });

  it.each([
    { limit: '0' },
    { limit: '101' },
    { limit: 'x' },
    { status: 'done' },
    { unknown: 'x' },
    { cursor: 'made-up' },
  ])('refuses the query %j', async (query) => {
    await expect(get(LIST, { query: query as unknown as Record<string, string> })).rejects.toEqual(problem(400));
  });

  it.each([undefined, null, {}, { tenant: 'acme' }, { tenant: 'acme', person: 'x', role: 'god' }])(
    'is not shown without a caller (%j)',
    async (caller) => {
      const event = {
        routeKey: `GET ${LIST}`,
        requestContext: { authorizer: { lambda: caller } },
      } as unknown as HttpEvent;
      const api = {
        runs: shop.runs,
        definitions: shop.definitions,
        cursorSecret: async () => 'secret',
        ...outputPorts(shop.clock),
      };
      await expect(handleRuns(api, event)).rejects.toEqual(problem(401));
    },
  );
});

describe('a run', () => {
  it('is shown with its steps, commits, receipts and evidence', async () => {
    const message = await shop.begin(TRIAGE);
    await shop.finish(message);
    const { status, body } = await get(ONE, { id: message.runId });
    expect(status).toBe(200);
    expect(body).toMatchObject({ runId: message.runId, status: 'succeeded', title: 'Checkout fails', error: null });
    expect(body.steps.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
      ['route', 'succeeded'],
      ['assign', 'succeeded'],
      ['note', 'succeeded'],
      ['label', 'succeeded'],
    ]);
    expect(body.receipts.map(({ stepId }: { stepId: string }) => stepId)).toEqual(['assign', 'note', 'label']);
    expect(body.commits).toHaveLength(body.head.seq);
    expect(body.evidence).toMatchObject({ sha256: expect.any(String) });
    expect(body).not.toHaveProperty('moreCommitsSince');
  });

  it('that has not started shows its steps as pending', async () => {
    const message = await shop.begin(TRIAGE);
    const { body } = await get(ONE, { id: message.runId });
    expect(body.steps.map(({ status }: { status: string }) => status)).toEqual(Array(4).fill('pending'));
    expect(body.evidence).toBeNull();
  });

  it.each([
    ['of another tenant', 'run_00000001', 'globex'],
    ['that does not exist', 'run_000000ff', 'acme'],
    ['by a name that could be a key', 'run_1#acme', 'acme'],
    ['without a name', '', 'acme'],
  ])('%s is not found, with the same text', async (_what, id, tenant) => {
    await shop.begin(LABEL);
    for (const route of [ONE, EVENTS]) {
      const asked = get(route, { id, tenant });
      await expect(asked).rejects.toMatchObject({ status: 404, code: 'NOT_FOUND', message: `there is no run ${id}` });
    }
  });
});

describe('the events of a run', () => {
  it('are listed after a number, with where to continue and whether there are more', async () => {
    const message = await shop.begin(TRIAGE);
    await shop.work(message);
    const at = async (query: Record<string, string>) => {
      const { body } = await get(EVENTS, { id: message.runId, query });
      return [body.commits.map(({ seq }: { seq: number }) => seq), body.next, body.more, body.status];
    };
    expect(await at({ since: '0', limit: '2' })).toEqual([[1, 2], 2, true, 'succeeded']);
    expect(await at({ since: '2' })).toEqual([[3, 4, 5], 5, false, 'succeeded']);
    expect(await at({ since: '5' })).toEqual([[], 5, false, 'succeeded']);
  });

  it.each([{ since: '-1' }, { since: 'x' }, { limit: '0' }])('refuse the query %j', async (query) => {
    const message = await shop.begin(LABEL);
    const asked = get(EVENTS, { id: message.runId, query: query as unknown as Record<string, string> });
    await expect(asked).rejects.toEqual(problem(400));
  });
});

it('an unknown route is not found', async () => {
  await expect(get('/api/v1/other')).rejects.toEqual(problem(404));
});
