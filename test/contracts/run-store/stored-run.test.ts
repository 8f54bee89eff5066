import {
  type DynamoDBClient,
  PutItemCommand,
  QueryCommand,
  type QueryCommandOutput,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newRowOf } from '../../../lambdas/live/dynamo-new-row.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import { commitKey, RUN_SORT_KEY } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../../lambdas/run/dynamo/dynamo-rows.ts';
import { DynamoRunStore } from '../../../lambdas/run/dynamo/dynamo-run-store.ts';
import { later } from '../../../lambdas/run/lease.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { STORY_BEGINS_AT as AT, FakeClock } from '../../fakes/fake-clock.ts';
import { accepted } from '../../fakes/story.ts';
import { ChangeDraft } from './change-draft.ts';
import { held, MINUTE_MS } from './run-store-bench.ts';
import { openRunTable } from './run-table.ts';

/** How DynamoDB stores a run: in few rows, which are read and written while others change them. */
let table: Awaited<ReturnType<typeof openRunTable>>;
let store: DynamoRunStore;
beforeAll(async () => {
  table = await openRunTable();
  store = storeOf(table.client);
});
afterAll(() => table.close());

const storeOf = (client: DynamoDBClient) =>
  new DynamoRunStore(client, table.table, { random: () => 0, sleep: async () => {} }, new FakeClock());

/** A store between whose requests others do something. */
function interrupted(around: (command: object, send: () => Promise<unknown>) => Promise<unknown>): DynamoRunStore {
  const send = (command: never) => around(command, () => table.client.send(command));
  return storeOf({ send } as unknown as DynamoDBClient);
}

const until = later(AT, 10 * MINUTE_MS);
const after = (run: Run, seconds: number) => new ChangeDraft(run, later(AT, seconds * 1_000));

const BY = { initiator: 'system', actor: 'contract' } as const;

let runs = 0;
/** A run that is due in a minute, and whose first step is held under the fencing number 2. */
async function running(): Promise<Run> {
  runs += 1;
  const { ingest, run } = accepted({ tenant: 'stored', runId: `run_stored_${runs}`, key: `key_${runs}` });
  await store.ingest(ingest);
  const begun = after(run, 1)
    .move('enriching', BY)
    .move('ready', BY)
    .move('running', BY)
    .note({ dueAt: later(AT, MINUTE_MS) })
    .writeStep(held(0, 2))
    .seal();
  return committed(begun);
}

async function committed(change: RunChange): Promise<Run> {
  expect(await store.commit(change)).toEqual({ outcome: 'committed' });
  return change.run;
}

it('a lease that another worker takes during its first renewal is not renewed', async () => {
  const run = await running();
  const take = after(run, 2).writeStep(held(0, 3), 2).seal();
  let puts = 0;
  const staleWorker = interrupted(async (command, send) => {
    if (command instanceof PutItemCommand) puts += 1;
    // It has read that it holds the lease, and is about to say so.
    if (puts === 2) await committed(take);
    return send();
  });
  expect(await staleWorker.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(false);
  expect((await store.load(run.tenant, run.runId))?.steps).toEqual([held(0, 3)]);
});

it('a first renewal whose response was lost, or that is sent twice, is a renewal', async () => {
  const run = await running();
  let puts = 0;
  const retrying = interrupted(async (command, send) => {
    if (command instanceof PutItemCommand) puts += 1;
    // Stored; the SDK sends it again, because it got no response.
    if (puts === 2) await send();
    return send();
  });
  expect(await retrying.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(true);
  const { tenant, runId } = await running();
  const renewals = [1, 2, 3].map((ms) => store.renewLease(tenant, runId, held(0, 2), later(until, ms)));
  expect(await Promise.all(renewals)).toEqual([true, true, true]);
});

/** A commit that writes the row of the run, and one that writes that of a large step. */
it.each([
  { row: RUN_SORT_KEY, changed: { dueAt: until }, step: held(0, 3) },
  { row: 'STEP#0000', changed: {}, step: { ...held(0, 3), input: { text: 'x'.repeat(5_000) } } },
])(
  'a run that is committed while it is read is read as it was before or after, and never in between ($row)',
  async (each) => {
    const run = await running();
    const next = after(run, 2).note(each.changed).writeStep(each.step, 2).seal();
    let reads = 0;
    const reader = interrupted(async (command, send) => {
      const early = (await send()) as QueryCommandOutput;
      if (!(command instanceof QueryCommand)) return early;
      reads += 1;
      if (reads > 1) return early;
      await committed(next);
      // DynamoDB has read the commits before the change, and this row after it.
      const late = (await send()) as QueryCommandOutput;
      const others = early.Items?.filter(({ sk }) => sk?.S !== each.row) ?? [];
      return { ...early, Items: [...others, ...(late.Items?.filter(({ sk }) => sk?.S === each.row) ?? [])] };
    });
    expect(await reader.load(run.tenant, run.runId)).toMatchObject({ run: next.run, steps: [each.step] });
    expect(reads).toBe(2);
  },
);

it.each([RUN_SORT_KEY, 'STEP#0000'])('a run of which %s was read before a commit is read again', async (row) => {
  const large = (leaseVersion: number) => ({ ...held(0, leaseVersion), input: { text: 'x'.repeat(5_000) } });
  const run = await committed(
    after(await running(), 2)
      .writeStep(large(3), 2)
      .seal(),
  );
  const next = after(run, 3).note({ assignee: 'ana' }).writeStep(large(4), 3).seal();
  let reads = 0;
  const reader = interrupted(async (command, send) => {
    const early = (await send()) as QueryCommandOutput;
    reads += command instanceof QueryCommand ? 1 : 0;
    if (reads !== 1) return early;
    await committed(next);
    const late = (await send()) as QueryCommandOutput;
    const stale = early.Items?.filter(({ sk }) => sk?.S === row) ?? [];
    return { ...late, Items: [...(late.Items?.filter(({ sk }) => sk?.S !== row) ?? []), ...stale] };
  });
  expect(await reader.load(run.tenant, run.runId)).toMatchObject({ run: next.run, steps: [large(4)] });
  expect(reads).toBe(2);
});

it.each(['waiting_approval', 'rolling_back'] as const)(
  'the row of a run that waits in %s is written with every commit, because the lists of open runs prove its head',
  async (status) => {
    const dueAt = later(AT, 5 * 24 * 60 * MINUTE_MS);
    let run = await committed(
      after(await running(), 2)
        .move(status, BY)
        .note({ dueAt })
        .seal(),
    );
    // Somebody votes, and the others are reminded: nothing of this changes when it is due.
    for (const minutes of [60, 24 * 60]) {
      run = await committed(new ChangeDraft(run, later(AT, minutes * MINUTE_MS)).seal());
      expect(await store.someRuns(run.tenant, [run.runId])).toEqual([run]);
    }
  },
);

it('the row of a run is written if its status, its lists or its due time change, and otherwise its state is still complete', async () => {
  const rows: string[][] = [];
  const counted = interrupted((command, send) => {
    if (command instanceof TransactWriteItemsCommand) {
      rows.push((command.input.TransactItems ?? []).map(({ Put }) => Put?.Item?.sk?.S?.split('#')[0] ?? ''));
    }
    return send();
  });
  let run = await running();
  const dueAt = (run as { dueAt?: string }).dueAt;
  const changes = [
    (draft: ChangeDraft) => draft.writeStep(held(1)),
    (draft: ChangeDraft) => draft.note({ dueAt: later(String(dueAt), -1) }),
    (draft: ChangeDraft) => draft.note({ dueAt: until }),
    (draft: ChangeDraft) => draft.note({ assignee: 'ana' }),
    (draft: ChangeDraft) => draft.note({ dueAt: undefined }),
  ];
  for (const [index, change] of changes.entries()) {
    const next = change(after(run, 2 + index)).seal();
    expect(await counted.commit(next)).toEqual({ outcome: 'committed' });
    run = next.run;
    expect((await store.load(run.tenant, run.runId))?.run).toEqual(run);
    expect((await store.runAndStep(run.tenant, run.runId, 0))?.run).toEqual(run);
  }
  expect(rows).toEqual([['COMMIT'], ['COMMIT'], ['COMMIT', 'RUN'], ['COMMIT', 'RUN'], ['COMMIT', 'RUN']]);
});

it('a run whose due time has come gets a row with the next commit, because the sweeper may have postponed it', async () => {
  const run = await running();
  // The clock of the sweeper may be ahead of this worker's.
  const late = new ChangeDraft(run, later(AT, MINUTE_MS - 1_000)).writeStep(held(1)).seal();
  await committed(late);
  expect(await store.someRuns(run.tenant, [run.runId])).toEqual([late.run]);
});

it('watchers and readers of commits do not get the steps in their rows', async () => {
  const run = await running();
  const [, commit] = await store.listCommits(run.tenant, run.runId, { after: 0, limit: 9 });
  expect(Object.keys(commit ?? {})).toEqual(['seq', 'prevHash', 'at', 'events', 'hash']);
  const row = await new DynamoRows(table.client, table.table).getItem(commitKey(run.tenant, run.runId, 2));
  expect(newRowOf(row ?? {}, '1')).toMatchObject({ kind: 'commit', commit });
  expect(JSON.stringify(newRowOf(row ?? {}, '1'))).not.toContain('lease_1');
});
