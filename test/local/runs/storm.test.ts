import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { slotCounterKey } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { assertChain } from '../../fakes/assert-chain.ts';
import { type Incident, incident, incidentInserted } from '../harness/deliveries.ts';
import { inParallel } from '../harness/eventually.ts';
import { isTerminal, type ShownRun } from '../harness/host-client.ts';
import { triageWrites } from '../harness/seen-writes.ts';
import { saveSettings } from '../harness/settings.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** `npm run storm` sets 1,000. */
const RUNS = Number(process.env.STORM_RUNS ?? 12);
const CONCURRENCY = 16;
const FAILING_CALLS = 0.05;
/** A worker is killed for each so many runs. */
const RUNS_PER_KILL = 3;
const MAX_CONCURRENCY = 20;
/** Senders retry. This one never stops, because a fault rule may affect one delivery several times. */
const DELIVERY_TRIES_MAX = 50;
const TIMEOUT_MS = 20 * 60_000;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
  await host.trustAutomations();
  await saveSettings(host, { caps: { maxConcurrency: MAX_CONCURRENCY } });
});
afterAll(() => host.stop());

it(
  'a storm of dying workers and failing AWS calls leaves every run ended, every write made at most once, every place free',
  async () => {
    const incidents = Array.from({ length: RUNS }, (_, index) => incident(`in the storm ${index}`));
    await inParallel(incidents, CONCURRENCY, (each) => host.createIncident(each));
    await host.fault({ kind: 'error', probability: FAILING_CALLS, times: 'always', seed: 7 });
    const runIds = await inParallel(incidents, CONCURRENCY, async (each) => {
      const index = incidents.indexOf(each);
      if (index % RUNS_PER_KILL === 0) await killWorker(index / RUNS_PER_KILL);
      return deliver(each);
    });
    await host.idle({ withinMs: TIMEOUT_MS });
    const faults = await host.faults();
    const hits = (of: (kind: string) => boolean) =>
      faults.filter(({ kind }) => of(kind)).reduce((sum, each) => sum + each.hits, 0);
    expect(hits((kind) => kind.startsWith('crash'))).toBeGreaterThan(RUNS / RUNS_PER_KILL / 2);
    expect(hits(() => true)).toBeGreaterThan(RUNS / RUNS_PER_KILL);
    await host.clearFaults();

    const runs = await host.letTimePassUntil(runIds, isTerminal, { withinMs: TIMEOUT_MS });
    const calls = await host.calls();
    for (const [index, each] of incidents.entries()) {
      const { note, post } = triageWrites(calls, each);
      expect(note, each.number).toBeLessThanOrEqual(1);
      expect(post, each.number).toBeLessThanOrEqual(1);
      const run = runs[index] as ShownRun;
      if (run.status === 'succeeded') expect([note, post], run.runId).toEqual([1, 1]);
      assertChain({ tenant: 'acme', runId: run.runId, seq: run.head.seq, headHash: run.head.hash }, run.commits);
    }
    expect(runs.filter(({ status }) => status !== 'succeeded').map(({ status, error }) => [status, error])).toEqual([]);
    expect(await placesTaken()).toBe(0);
  },
  TIMEOUT_MS,
);

/** At one of its next calls. */
const killWorker = (count: number) =>
  host.fault({
    function: 'WorkerStep',
    kind: count % 2 === 0 ? 'crash_after' : 'crash_before',
    nth: 1 + (count % 5),
  });

async function deliver(each: Incident): Promise<string> {
  for (let tries = 1; tries <= DELIVERY_TRIES_MAX; tries += 1) {
    const { status, body } = await host.sendServicenow(incidentInserted(each), { atMs: await host.now() });
    const [runId] = body?.runIds ?? [];
    if (status === 202 && runId) return runId;
  }
  throw new Error(`${each.number} was never accepted`);
}

async function placesTaken(): Promise<number> {
  const client = new DynamoDBClient(host.clientConfig());
  const Key = marshall(slotCounterKey('acme', 0));
  const { Item } = await client.send(new GetItemCommand({ TableName: host.tableName, Key, ConsistentRead: true }));
  client.destroy();
  return Item ? unmarshall(Item).running : 0;
}
