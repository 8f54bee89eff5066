import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoAgentRegistry } from '../../../lambdas/agents/dynamo-agent-registry.ts';
import { DynamoOutputStore } from '../../../lambdas/agents/dynamo-output-store.ts';
import { DynamoAgentChanges } from '../../../lambdas/api/agents/dynamo-agent-changes.ts';
import { DynamoApiKeys } from '../../../lambdas/api/authorizer/dynamo-api-keys.ts';
import { DynamoBulkJobs } from '../../../lambdas/api/bulk/dynamo-bulk-jobs.ts';
import { DynamoDigestStore } from '../../../lambdas/approval/digest/dynamo-digest-store.ts';
import { DynamoLiveStore } from '../../../lambdas/live/dynamo-live-store.ts';
import type { LiveStore } from '../../../lambdas/live/live-store.ts';
import { DynamoNoticeStore } from '../../../lambdas/notify/dynamo-notice-store.ts';
import { DynamoDefinitions } from '../../../lambdas/pipeline/dynamo-definitions.ts';
import { DynamoPlanStore } from '../../../lambdas/plan/dynamo-plan-store.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import {
  commitRow,
  itemBytes,
  ROW_MAX_BYTES,
  runItem,
  toItem,
  triggerItems,
} from '../../../lambdas/run/dynamo/dynamo-items.ts';
import { startCounterKey, TTL_ATTRIBUTE } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../../lambdas/run/dynamo/dynamo-rows.ts';
import { DynamoRunStore } from '../../../lambdas/run/dynamo/dynamo-run-store.ts';
import { later } from '../../../lambdas/run/lease.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { RunFilter } from '../../../lambdas/run/run-filter.ts';
import { DUE_SHARDS } from '../../../lambdas/run/run-store.ts';
import { DynamoScheduleStore } from '../../../lambdas/schedules/dynamo-schedule-store.ts';
import { FakeClock, STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { MemoryAgentChanges } from '../../fakes/memory/memory-agent-changes.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import { MemoryApiKeys } from '../../fakes/memory/memory-api-keys.ts';
import { MemoryBulkJobs } from '../../fakes/memory/memory-bulk-jobs.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { MemoryLive } from '../../fakes/memory/memory-live.ts';
import { MemoryOutput } from '../../fakes/memory/memory-output.ts';
import { MemoryPlanStore } from '../../fakes/memory/memory-plan-store.ts';
import { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { MemorySchedules } from '../../fakes/memory/memory-schedules.ts';
import { accepted } from '../../fakes/story.ts';
import { agentChangesContract } from '../agents/agent-changes-contract.ts';
import { agentRegistryContract } from '../agents/agent-registry-contract.ts';
import { outputStoreContract } from '../agents/output-store-contract.ts';
import { bulkJobsContract } from '../bulk-jobs-contract.ts';
import { describeDefinitionsContract } from '../definitions-contract.ts';
import { digestStoreContract } from '../digest-store-contract.ts';
import { liveStoreContract } from '../live-store-contract.ts';
import { noticeStoreContract } from '../notice-store-contract.ts';
import { planStoreContract } from '../plan-store-contract.ts';
import { scheduleStoreContract } from '../schedule-store-contract.ts';
import { describeApiKeysContract } from '../secrets/api-keys-contract.ts';
import { ChangeDraft } from './change-draft.ts';
import { BY, besides, evidenceRecord, requested } from './run-store-bench.ts';
import { describeRunStoreContract } from './run-store-contract.ts';
import { openRunTable } from './run-table.ts';

/** One engine and one table for all ports; each contract uses its own tenants. */
let run: Awaited<ReturnType<typeof openRunTable>>;
beforeAll(async () => {
  run = await openRunTable();
});
afterAll(() => run.close());

/** The size that we count for a number; DynamoDB stores most numbers in fewer bytes. */
const COUNTED_TOO_MUCH_BYTES = 21;
const close = async () => {};
/** Conflicts of transactions are retried without a pause, because no clock advances here. */
const pause = { random: () => 0, sleep: async () => {} };

describeRunStoreContract('memory', async () => ({ store: new MemoryRunStore(), close }));
describeRunStoreContract('DynamoDB', async () => ({
  store: new DynamoRunStore(run.client, run.table, pause, new FakeClock()),
  close,
}));

let liveTenants = 0;
const ofNewTenant = (live: (clock: FakeClock) => LiveStore) => () => {
  const clock = new FakeClock();
  liveTenants += 1;
  return { live: live(clock), clock, tenant: `live-${liveTenants}` };
};
liveStoreContract(
  'memory',
  ofNewTenant((clock) => new MemoryLive(clock)),
);
liveStoreContract(
  'DynamoDB',
  ofNewTenant((clock) => new DynamoLiveStore(run.client, run.table, clock)),
);

describe('bulk jobs: memory', () => bulkJobsContract(() => new MemoryBulkJobs()));
describe('bulk jobs: DynamoDB', () => bulkJobsContract(() => new DynamoBulkJobs(run.client, run.table)));

describe('agents: memory', () => agentRegistryContract(() => new MemoryAgents()));
describe('agents: DynamoDB', () => agentRegistryContract(() => new DynamoAgentRegistry(run.client, run.table, pause)));

describe('changes of agents: memory', () =>
  agentChangesContract(() => {
    const agents = new MemoryAgents();
    const changes = new MemoryAgentChanges(agents);
    return { agents, changes, history: async (tenant) => changes.history.filter((each) => each.tenant === tenant) };
  }));
describe('changes of agents: DynamoDB', () =>
  agentChangesContract(() => {
    const definitions = new DynamoDefinitions(run.client, run.table, pause);
    return {
      agents: new DynamoAgentRegistry(run.client, run.table, pause),
      changes: new DynamoAgentChanges(run.client, run.table, pause),
      history: async (tenant) => (await definitions.changes(tenant, { limit: 20 })).items,
    };
  }));

describe('output: memory', () => outputStoreContract(() => new MemoryOutput()));
describe('output: DynamoDB', () =>
  outputStoreContract(() => new DynamoOutputStore(run.client, run.table, new FakeClock())));

describe('schedules: memory', () =>
  scheduleStoreContract(() => {
    const store = new MemorySchedules();
    return { store, dueNames: async (now) => store.due(now).map(({ name }) => name) };
  }));
describe('schedules: DynamoDB', () =>
  scheduleStoreContract(() => {
    const runs = new DynamoRunStore(run.client, run.table, pause, new FakeClock());
    const dueNames = async (now: string) => {
      const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => runs.due(shard, now, { limit: 100 }));
      const due = (await Promise.all(shards)).flatMap(({ items }) => items);
      return due.flatMap((item) => (item.kind === 'schedule' && item.tenant.startsWith('sched') ? [item.name] : []));
    };
    return { store: new DynamoScheduleStore(run.client, run.table, pause), dueNames };
  }));

describe('notices: memory', () => noticeStoreContract(() => new MemoryRunStore().notices));
describe('notices: DynamoDB', () => noticeStoreContract(() => new DynamoNoticeStore(run.client, run.table)));
describe('digests: memory', () =>
  digestStoreContract(() => {
    const runs = new MemoryRunStore();
    return { store: runs.digests, runs };
  }));
describe('digests: DynamoDB', () =>
  digestStoreContract(() => ({
    store: new DynamoDigestStore(run.client, run.table, pause),
    runs: new DynamoRunStore(run.client, run.table, pause, new FakeClock()),
  })));

describe('plans: memory', () => planStoreContract(() => new MemoryPlanStore()));
describe('plans: DynamoDB', () => planStoreContract(() => new DynamoPlanStore(run.client, run.table)));

it('DynamoDB accepts a row of exactly our maximum size, and none beyond it', async () => {
  const rows = new DynamoRows(run.client, run.table);
  const row = (room: number) => {
    const item = toItem({ pk: 'RUN#sizes#run_1', sk: 'STEP#0001' }, { status: 'running', revision: 7 });
    return { ...item, filler: { B: new Uint8Array(ROW_MAX_BYTES - itemBytes(item) - 'filler'.length + room) } };
  };
  expect(itemBytes(row(0))).toBe(ROW_MAX_BYTES);
  expect(await rows.save(row(0))).toBe(true);
  await expect(rows.save(row(COUNTED_TOO_MUCH_BYTES))).rejects.toThrow(/size/);
});

it('a sealed run that expires is read until that second, even if its rows still exist; evidence and receipts stay', async () => {
  const clock = new FakeClock();
  const store = new DynamoRunStore(run.client, run.table, pause, clock);
  const { run: begun, ingest } = accepted({ tenant: 'expiring' });
  const { tenant, runId } = begun;
  await store.ingest(ingest);
  const approval = requested(begun);
  const draft = new ChangeDraft(begun, begun.updatedAt).move('canceled', BY).writeApproval(approval, 'new');
  await store.commit(draft.seal());
  await store.completeSeal(`${tenant}.${runId}.seal_evidence`, tenant, runId, evidenceRecord('kept'), besides);
  await store.expireRun(tenant, runId, clock.now() / 1000 + 60);
  const read = async () => ({
    run: (await store.load(tenant, runId))?.run.runId,
    listed: (await store.listRuns(tenant, { limit: 5 })).items.length,
    commits: (await store.listCommits(tenant, runId, { after: 0, limit: 9 })).length,
    approval: (await store.approval(tenant, runId, approval.approvalId))?.approvalId,
    approvals: (await store.approvals(tenant, [approval.approvalId])).length,
    evidence: (await store.evidence(tenant, runId))?.sha256,
  });
  clock.advance(59_000);
  const all = { run: runId, listed: 1, commits: 2, approval: approval.approvalId, approvals: 1, evidence: 'kept' };
  expect(await read()).toEqual(all);
  clock.advance(1_000);
  expect(await read()).toEqual({ listed: 0, commits: 0, approvals: 0, evidence: 'kept' });
});

it('the starts of a minute are counted in a row that expires an hour later', async () => {
  const store = new DynamoRunStore(run.client, run.table, pause, new FakeClock());
  const { run: begun, ingest } = accepted({ tenant: 'rate-tenant' });
  await store.ingest(ingest);
  const minute = '2026-01-02T03:04';
  const draft = new ChangeDraft(begun, begun.updatedAt).cap({ kind: 'count_start', minute, max: 5 });
  expect(await store.commit(draft.seal())).toEqual({ outcome: 'committed' });
  const Key = marshall(startCounterKey('rate-tenant', minute));
  const { Item } = await run.client.send(new GetItemCommand({ TableName: run.table, Key }));
  expect(unmarshall(Item ?? {})).toMatchObject({
    starts: 1,
    [TTL_ATTRIBUTE]: Date.parse('2026-01-02T04:04:00.000Z') / 1000,
  });
});

it('a list of 50 runs takes at most two requests for any single filter', async () => {
  const tenant = 'many-runs';
  const rows = new DynamoRows(run.client, run.table);
  const store = new DynamoRunStore(run.client, run.table, pause, new FakeClock());
  const error = { code: 'TARGET_REFUSED', message: 'refused' } as const;
  const runs = Array.from({ length: 120 }, (_, index) => {
    const at = later(STORY_BEGINS_AT, index);
    const { run: begun, trigger } = accepted({ tenant, runId: `run_${index}`, at, title: 'Disk full' });
    const { dueAt: _dueAt, ...facts } = begun;
    const ended: Run = { ...facts, status: 'needs_human', completedAt: at, durationMs: 1, error };
    const run: Run = index % 2 === 0 ? ended : { ...begun, approvalOverdueSince: at, assignee: 'oscar' };
    const ends = { seq: 2, events: [{ type: 'run.status_changed', to: 'needs_human' }] } as unknown as Commit;
    return { run, trigger, ends };
  });
  const items = runs.flatMap(({ run, trigger, ends }) => [
    runItem(run),
    ...triggerItems([{ run }], trigger),
    commitRow(run, ends, ends),
  ]);
  while (items.length > 0)
    await rows.transact(
      items.splice(0, 100).map((item) => rows.put(item)),
      pause,
    );

  let requests = 0;
  run.client.middlewareStack.add(
    (next) => (args) => {
      requests += 1;
      return next(args);
    },
    { name: 'countRequests' },
  );
  const filters: RunFilter[] = [
    {},
    { status: 'needs_human' },
    { automation: 'label-new-issue' },
    { workflow: 'label-new-issue' },
    { subject: 'octo-org/payments#7' },
    { errorCode: 'TARGET_REFUSED' },
    { overdue: true },
    { assignee: 'oscar' },
    { needsResolution: true },
    { since: STORY_BEGINS_AT, until: later(STORY_BEGINS_AT, 99) },
    { text: 'disk' },
  ];
  for (const filter of filters) {
    requests = 0;
    const { items } = await store.listRuns(tenant, { ...filter, limit: 50 });
    expect({ filter, found: items.length, requests }).toEqual({ filter, found: 50, requests: 2 });
  }
  requests = 0;
  expect(await store.runIdsStartingWith(tenant, 'run_11', 6)).toEqual([]);
  expect(requests).toBe(1);
  run.client.middlewareStack.remove('countRequests');
});

describeDefinitionsContract('memory', async () => ({ definitions: new MemoryDefinitions(), close }));
describeDefinitionsContract('DynamoDB', async () => ({
  definitions: new DynamoDefinitions(run.client, run.table),
  close,
}));

describeApiKeysContract('memory', async () => ({ keys: new MemoryApiKeys(), close }));
describeApiKeysContract('DynamoDB', async () => ({ keys: new DynamoApiKeys(run.client, run.table), close }));
