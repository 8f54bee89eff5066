import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { slotCounterKey } from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { assertChain } from '../fakes/assert-chain.ts';
import { type Incident, incident, incidentInserted } from './deliveries.ts';
import { inParallel } from './eventually.ts';
import { isTerminal, type ShownRun } from './host-client.ts';
import { triageWrites } from './seen-writes.ts';
import { saveSettings } from './settings.ts';
import { startTestHost, type TestHost } from './test-host.ts';

/** `npm run storm` sets 1,000; the test suite has time for a smaller one. */
const RUNS = Number(process.env.STORM_RUNS ?? 25);
const CONCURRENCY = 16;
const FAILING_CALLS = 0.05;
const KILL_EVERY_MS = 1_000;
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
    let kills = 0;
    const killer = setInterval(() => {
      kills += 1;
      const kind = kills % 2 === 0 ? 'crash_before' : 'crash_after';
      host.fault({ function: 'WorkerStep', kind, nth: 1 + (kills % 5) }).catch(() => {});
    }, KILL_EVERY_MS);
    const runIds = await inParallel(incidents, CONCURRENCY, deliver);
    await host.idle({ withinMs: TIMEOUT_MS });
    clearInterval(killer);
    const struck = (await host.faults()).reduce((sum, { hits }) => sum + hits, 0);
    expect(struck).toBeGreaterThan(RUNS / 10);
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
