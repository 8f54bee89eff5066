import { expect, it } from 'vitest';
import { DynamoRunStore } from '../../lambdas/run/dynamo/dynamo-run-store.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { accepted } from '../fakes/story.ts';
import { ChangeDraft } from './run-store/change-draft.ts';
import { openRunTable } from './run-store/run-table.ts';

const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
const facts = {
  schemaVersion: 1,
  index: 0,
  id: 's',
  tool: 'transform',
  leaseVersion: 0,
  attempt: 0,
  updatedAt: 'x',
} as const;

it.each([
  ['a whole number beyond 2^53', Number('12345678901234567890')],
  ['a very large number', 1e300],
  ['a very small number', 1e-200],
  ['deep nesting, as webhooks may have (64)', nested(60)],
])('keeps %s in a step output and in trigger fields', async (_what, value) => {
  const run = await openRunTable();
  const store = new DynamoRunStore(run.client, run.table, { random: () => 0, sleep: async () => {} }, new FakeClock());
  const begun = accepted({ trigger: { fields: { title: 'x', value } } });
  expect(await store.ingest(begun.ingest)).toEqual({ outcome: 'created' });
  const step = { ...facts, status: 'succeeded', output: value, completedAt: 'x' } as const;
  expect(await store.commit(new ChangeDraft(begun.run, begun.run.createdAt).writeStep(step).seal())).toEqual({
    outcome: 'committed',
  });
  expect((await store.load('acme', begun.run.runId))?.steps[0]).toMatchObject({ output: value });
  await run.close();
});
