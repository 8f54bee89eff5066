import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { newOutboxEntry } from '../../lambdas/outbox/outbox.ts';
import { DynamoRunStore } from '../../lambdas/run/dynamo/dynamo-run-store.ts';
import { later } from '../../lambdas/run/lease.ts';
import type { ActiveRun } from '../../lambdas/run/run.ts';
import { DUE_TIME_STEP_MS, type RunStore } from '../../lambdas/run/run-store.ts';
import { SENT_TOGETHER_MAX } from '../../lambdas/run-changes/step-queue.ts';
import { sweep } from '../../lambdas/sweep/sweep.ts';
import { ChangeDraft } from '../contracts/run-store/change-draft.ts';
import { openRunTable } from '../contracts/run-store/run-table.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { MemoryOutbox } from '../fakes/memory/memory-outbox.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { MemoryStepQueue } from '../fakes/memory/memory-step-queue.ts';
import { accepted } from '../fakes/story.ts';

/** No worker processes the messages: every run behaves like one that waits for a slot or fails in every worker. */
const BY = { initiator: 'system', actor: 'test' } as const;
const SWEEP_EVERY_MS = 60_000;
const AT_ONCE = 20;

interface Due {
  /** Waiting runs, and ended runs whose evidence is not sealed. */
  runs: number;
  entries: number;
  /** How long before the first sweep they are due. */
  dueSinceMs: number;
}

/** A store with due items, and the messages of the sweeps. */
class Sweeping {
  readonly #store: RunStore;
  readonly #clock = new FakeClock();
  readonly #log = new MemoryLog();
  readonly #queue = new MemoryStepQueue(this.#clock);
  readonly #outbox = new MemoryOutbox();
  readonly #waiting: ActiveRun[] = [];
  #count = 0;

  constructor(store: RunStore) {
    this.#store = store;
  }

  async fill(tenants: Record<string, Due>): Promise<void> {
    for (const [tenant, { runs, entries, dueSinceMs }] of Object.entries(tenants)) {
      const dueAt = later(new Date(this.#clock.now()).toISOString(), -dueSinceMs);
      const begin = (index: number) => (index < runs ? this.#run(tenant, dueAt) : this.#entry(tenant, dueAt));
      for (let done = 0; done < runs + entries; done += AT_ONCE) {
        const some = Math.min(AT_ONCE, runs + entries - done);
        await Promise.all(Array.from({ length: some }, (_, index) => begin(done + index)));
      }
    }
  }

  async #begin(tenant: string, dueAt: string): Promise<ActiveRun> {
    this.#count += 1;
    const runId = `run_${this.#count.toString(16).padStart(8, '0')}`;
    const { run, ingest } = accepted({ tenant, runId, dueAt });
    await this.#store.ingest(ingest);
    return run;
  }

  async #run(tenant: string, dueAt: string): Promise<void> {
    this.#waiting.push(await this.#begin(tenant, dueAt));
  }

  async #entry(tenant: string, dueAt: string): Promise<void> {
    const run = await this.#begin(tenant, dueAt);
    const entry = { ...newOutboxEntry({ kind: 'seal_evidence', tenant, runId: run.runId }, dueAt), dueAt };
    await this.#store.commit(new ChangeDraft(run, run.updatedAt).move('canceled', BY).enqueue(entry).seal());
  }

  /** Sweeps with time for this many batches. Returns the runs by tenant that got a message of either kind. */
  async sweep(batches = Number.POSITIVE_INFINITY): Promise<void> {
    let left = batches;
    const hasTimeToSend = () => {
      left -= 1;
      return left >= 0;
    };
    const [runs, queue, outbox, clock, log] = [this.#store, this.#queue, this.#outbox, this.#clock, this.#log];
    await sweep({
      runs,
      queue,
      outbox,
      clock,
      log,
      tenants: [],
      definitions: new MemoryDefinitions(),
      hasTimeToRead: () => true,
      hasTimeToSend,
      fireSchedule: async () => {},
    });
    this.#clock.advance(SWEEP_EVERY_MS);
  }

  /** The number of distinct items sent per tenant. */
  sent(): Map<string, number> {
    const things = new Set(
      [...this.#queue.receive(), ...this.#outbox.receiveSeals()].map((m) => `${m.tenant} ${m.runId}`),
    );
    const byTenant = new Map<string, number>();
    for (const thing of things) {
      const [tenant = ''] = thing.split(' ');
      byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + 1);
    }
    return byTenant;
  }
}

const Tenants = fc.dictionary(
  fc.constantFrom('acme', 'globex', 'initech', 'umbrella', 'hooli'),
  fc.record({
    runs: fc.oneof(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 90 })),
    entries: fc.integer({ min: 0, max: 6 }),
    dueSinceMs: fc.integer({ min: DUE_TIME_STEP_MS, max: 3_600_000 }),
  }),
  { minKeys: 1 },
);

let table: Awaited<ReturnType<typeof openRunTable>> | undefined;
const inDynamo = async () => {
  await table?.close();
  table = await openRunTable();
  return new DynamoRunStore(table.client, table.table, { random: () => 0, sleep: async () => {} }, new FakeClock());
};
afterAll(() => table?.close());

describe.each([
  { name: 'memory', open: async () => new MemoryRunStore(undefined, { duePageMax: 40 }), numRuns: 60 },
  { name: 'DynamoDB', open: inDynamo, numRuns: 4 },
])('with its runs in $name', ({ open, numRuns }) => {
  it('one sweep with enough time sends all due rows of all tenants', async () => {
    await fc.assert(
      fc.asyncProperty(Tenants, async (tenants) => {
        const sweeping = new Sweeping(await open());
        await sweeping.fill(tenants);
        await sweeping.sweep();
        const expected = Object.entries(tenants).map(
          ([tenant, { runs, entries }]) => [tenant, runs + entries] as const,
        );
        expect(sweeping.sent()).toEqual(new Map(expected.filter(([, count]) => count > 0)));
      }),
      { numRuns },
    );
  }, 120_000);

  it('two interrupted sweeps send all items of a tenant within its share, even if others have many due items', async () => {
    await fc.assert(
      fc.asyncProperty(Tenants, fc.integer({ min: 1, max: 12 }), async (tenants, batches) => {
        const sweeping = new Sweeping(await open());
        await sweeping.fill(tenants);
        await sweeping.sweep(batches);
        await sweeping.sweep(batches);
        const sent = sweeping.sent();
        const due = Object.entries(tenants).map(([tenant, { runs, entries }]) => ({ tenant, count: runs + entries }));
        const share = 2 * Math.floor((batches * SENT_TOGETHER_MAX) / due.filter(({ count }) => count > 0).length);
        for (const { tenant, count } of due) {
          expect(sent.get(tenant) ?? 0, tenant).toBeGreaterThanOrEqual(Math.min(count, share));
        }
      }),
      { numRuns },
    );
  }, 120_000);

  it('2,400 due runs of a tenant without free slots do not delay other tenants', async () => {
    const sweeping = new Sweeping(await open());
    await sweeping.fill({
      capped: { runs: 2_400, entries: 0, dueSinceMs: 3_600_000 },
      other: { runs: 40, entries: 10, dueSinceMs: DUE_TIME_STEP_MS },
    });
    await sweeping.sweep(10);
    expect(sweeping.sent()).toEqual(
      new Map([
        ['capped', 50],
        ['other', 50],
      ]),
    );
  }, 120_000);
});
