import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoRunStore } from '../../lambdas/run/dynamo/dynamo-run-store.ts';
import { later } from '../../lambdas/run/lease.ts';
import { DUE_TIME_STEP_MS } from '../../lambdas/run/run-store.ts';
import { openRunTable } from '../contracts/run-store/run-table.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { IS_STORM } from '../storm.ts';
import { SeededRandom } from './environment/seeded-random.ts';
import { RandomOperations } from './random-operations.ts';

/** `npm run storm` compares more. */
const SEQUENCES = IS_STORM ? 600 : 120;
const OPERATIONS = 20;
/** How many sequences run in parallel; each has its own tenant and time. */
const PARALLEL = 6;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What the simulation proves about the memory store holds for DynamoDB, because both behave identically. */
describe('the memory store and DynamoDB', () => {
  let table: Awaited<ReturnType<typeof openRunTable>>;
  beforeAll(async () => {
    table = await openRunTable();
  });
  afterAll(() => table.close());

  const results = new Map<string, number>();

  async function compare(seed: number): Promise<void> {
    const memory = new MemoryRunStore(undefined, { dueStepMs: DUE_TIME_STEP_MS });
    const dynamo = new DynamoRunStore(
      table.client,
      table.table,
      { random: () => 0, sleep: async () => {} },
      new FakeClock(),
    );
    const at = later(STORY_BEGINS_AT, -seed * DAY_MS);
    const operations = new RandomOperations(new SeededRandom(seed), memory, `tenant-${seed}`, at);
    const names: string[] = [];
    for (let count = 0; count < OPERATIONS; count += 1) {
      const { name, run } = operations.next();
      names.push(name);
      const settled = async (result: Promise<unknown>) =>
        result.then(
          (value) => ({ value: JSON.parse(JSON.stringify(value ?? null)) }),
          () => ({ threw: true }),
        );
      const [expected, actual] = [await settled(run(memory)), await settled(run(dynamo))];
      expect(actual, `seed ${seed}:\n${names.join('\n')}`).toEqual(expected);
      note(name, expected);
    }
  }

  /** Counts results by the first word of the operation and of its result. */
  function note(name: string, result: { value?: unknown; threw?: boolean }): void {
    const value = result.value as { outcome?: string } | boolean | string | null | undefined;
    const short = result.threw ? 'threw' : typeof value !== 'object' ? value : (value?.outcome ?? 'something');
    const kind = `${name.split(' ')[0]} ${short}`;
    results.set(kind, (results.get(kind) ?? 0) + 1);
  }

  it(`return the same results for ${SEQUENCES} random sequences of ${OPERATIONS} operations`, async () => {
    const seeds = Array.from({ length: SEQUENCES }, (_, index) => index + 1);
    const lane = async () => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) await compare(seed);
    };
    await Promise.all(Array.from({ length: PARALLEL }, lane));
    const every = [
      ...['ingest created', 'ingest duplicate', 'ingest threw'],
      ...['commit committed', 'commit lost', 'commit receipt_held', 'commit no_slot'],
      ...['renew true', 'renew false', 'bump true', 'bump false'],
      ...['token stored', 'token changed', 'token has_later_token'],
      ...['claim true', 'claim false', 'card changed', 'card sent_again'],
    ];
    expect(every.filter((kind) => !results.has(kind))).toEqual([]);
  });
});
