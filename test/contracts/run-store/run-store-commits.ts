import { describe, expect, it } from 'vitest';
import { later } from '../../../lambdas/run/lease.ts';
import { assertChain } from '../../fakes/assert-chain.ts';
import { STORY_BEGINS_AT as AT } from '../../fakes/fake-clock.ts';
import { accepted } from '../../fakes/story.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { held, intent, MINUTE_MS, type RunStoreBench } from './run-store-bench.ts';

/** Ingests and commits of runs. */
export function describeCommits(bench: RunStoreBench): void {
  const { newTenant, newRunId, begin, loaded, change, cancel } = bench;

  describe('a commit that creates a run', () => {
    it('creates it whole, or not at all if the commit is lost', async () => {
      const run = await begin();
      const created = accepted({ tenant: run.tenant, runId: newRunId() });
      const { run: rollback, commit, trigger } = created;
      const creates = { run: rollback, commit, trigger };
      const rival = change(run, later(AT, 1)).seal();
      expect(await bench.store.commit(rival)).toEqual({ outcome: 'committed' });
      expect(await bench.store.commit({ ...change(run).seal(), creates })).toEqual({ outcome: 'lost' });
      const made = { ...change(rival.run, later(AT, 2)).seal(), creates };
      expect(await bench.store.load(run.tenant, rollback.runId)).toBeUndefined();
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      expect(await bench.store.load(run.tenant, rollback.runId)).toEqual({ run: rollback, trigger, steps: [] });
      expect(await bench.store.listCommits(run.tenant, rollback.runId, { after: 0, limit: 9 })).toEqual([commit]);
      // The reply was lost: the store recognizes its own commit.
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
    });
  });

  describe('ingesting a delivery', () => {
    it('creates the run with its trigger and first commit', async () => {
      const { run, trigger, commit, ingest } = accepted({ tenant: newTenant(), runId: newRunId() });
      expect(await bench.store.ingest(ingest)).toEqual({ outcome: 'created' });
      expect(await bench.store.load(run.tenant, run.runId)).toEqual({ run, trigger, steps: [] });
      expect((await wholeRun(bench.store, run.tenant, run.runId))?.commits).toEqual([commit]);
      expect(await bench.store.listCommits(run.tenant, run.runId, { after: 0, limit: 10 })).toEqual([commit]);
    });

    it('stores a payload of any shape unchanged', async () => {
      const payload = {
        nested: [{ deep: { text: 'ä € 😀', empty: '', none: null, zero: 0, list: [] } }],
        big: 2 ** 53,
      };
      const run = await begin({ trigger: { payload } });
      expect((await loaded(run)).trigger.payload).toEqual(payload);
    });

    it('returns the runs of the first delivery for a repeated one, and creates nothing', async () => {
      const run = await begin({ key: 'github:one' });
      const again = accepted({ tenant: run.tenant, runId: newRunId(), key: 'github:one' });
      const result = await bench.store.ingest(again.ingest);
      expect(result).toMatchObject({
        outcome: 'duplicate',
        record: { runIds: [run.runId], requestHash: again.ingest.records[0]?.requestHash },
      });
      expect(await bench.store.load(run.tenant, again.run.runId)).toBeUndefined();
    });

    it('recognizes its own transaction after a lost response', async () => {
      const { ingest } = accepted({ tenant: newTenant(), runId: newRunId() });
      await bench.store.ingest(ingest);
      expect(await bench.store.ingest(ingest)).toEqual({ outcome: 'created' });
    });

    it('accepts exactly one of many identical deliveries', async () => {
      const tenant = newTenant();
      const deliveries = Array.from({ length: 8 }, () => accepted({ tenant, runId: newRunId(), key: 'github:storm' }));
      const results = await Promise.all(deliveries.map(({ ingest }) => bench.store.ingest(ingest)));
      expect(results.filter(({ outcome }) => outcome === 'created')).toHaveLength(1);
      expect((await bench.store.listRuns(tenant, { limit: 10 })).items).toHaveLength(1);
    });

    it('replaces an expired record although it can still be read', async () => {
      const first = await begin({ key: 'github:old', expiresAt: later(AT, MINUTE_MS) });
      const at = (ms: number) =>
        accepted({ tenant: first.tenant, runId: newRunId(), key: 'github:old', at: later(AT, ms) });
      expect(await bench.store.ingest(at(MINUTE_MS - 1).ingest)).toMatchObject({ outcome: 'duplicate' });
      const expired = { key: 'github:old', runIds: [first.runId] };
      expect(await bench.store.ingest(at(MINUTE_MS).ingest)).toMatchObject({ outcome: 'created', expired });
      expect(await bench.store.ingest(at(MINUTE_MS + 1).ingest)).toMatchObject({ outcome: 'duplicate' });
    });

    const burst = (tenant: string, key: string, at: string) => {
      const taken = accepted({ tenant, runId: newRunId(), key, at });
      const [own] = taken.ingest.records;
      if (!own) throw new Error('a delivery has a record of its own');
      const second = { ...own, key: 'github:burst', expiresAt: later(at, 5_000) };
      return { ...taken, ingest: { ...taken.ingest, records: [own, second] } };
    };

    it('returns the runs of the first delivery of a burst for the second, and stores nothing of it', async () => {
      const tenant = newTenant();
      const first = burst(tenant, 'github:first', AT);
      expect(await bench.store.ingest(first.ingest)).toEqual({ outcome: 'created' });
      const second = burst(tenant, 'github:second', later(AT, 4_999));
      expect(await bench.store.ingest(second.ingest)).toMatchObject({
        outcome: 'duplicate',
        record: { key: 'github:burst', runIds: [first.run.runId] },
      });
      const afterwards = burst(tenant, 'github:second', later(AT, 5_000));
      expect(await bench.store.ingest(afterwards.ingest)).toEqual({ outcome: 'created' });
    });

    it('returns the record of the delivery before that of the burst if both exist', async () => {
      const tenant = newTenant();
      await bench.store.ingest(burst(tenant, 'github:first', AT).ingest);
      const again = await bench.store.ingest(burst(tenant, 'github:first', later(AT, 1)).ingest);
      expect(again).toMatchObject({ outcome: 'duplicate', record: { key: 'github:first' } });
    });

    it('recognizes its own transaction with several records', async () => {
      const { ingest } = burst(newTenant(), 'github:first', AT);
      await bench.store.ingest(ingest);
      expect(await bench.store.ingest(ingest)).toEqual({ outcome: 'created' });
    });

    it('creates all runs of a delivery or none', async () => {
      const taken = await begin();
      const { ingest } = accepted({ tenant: taken.tenant, runId: newRunId(), key: 'github:two-runs' });
      const other = accepted({ tenant: taken.tenant, runId: taken.runId, key: 'github:two-runs' });
      const both = { ...ingest, runs: [...ingest.runs, ...other.ingest.runs] };
      await expect(bench.store.ingest(both)).rejects.toThrow(/taken/);
      expect(await bench.store.load(taken.tenant, ingest.runs[0]?.run.runId ?? '')).toBeUndefined();
    });
  });

  describe('committing', () => {
    it('changes the run and its chain together', async () => {
      const run = await begin();
      const first = change(run).seal();
      expect(await bench.store.commit(first)).toEqual({ outcome: 'committed' });
      const second = cancel(first.run);
      expect(await bench.store.commit(second)).toEqual({ outcome: 'committed' });
      const now = await loaded(run);
      expect(now.run).toEqual(second.run);
      const commits = await bench.store.listCommits(run.tenant, run.runId, { after: 0, limit: 10 });
      expect(commits.map(({ seq }) => seq)).toEqual([1, 2, 3]);
      assertChain(now.run, commits);
    });

    it('loses to an earlier change of the run, and then writes nothing', async () => {
      const run = await begin();
      await bench.store.commit(change(run, later(AT, 1)).seal());
      const stale = change(run, later(AT, 2)).writeStep(held(0)).seal();
      expect(await bench.store.commit(stale)).toEqual({ outcome: 'lost' });
      expect((await loaded(run)).steps).toEqual([]);
    });

    it('has one winner among concurrent commits', async () => {
      const run = await begin();
      const rivals = Array.from({ length: 6 }, (_, index) => change(run, later(AT, index + 1)).seal());
      const results = await Promise.all(rivals.map((rival) => bench.store.commit(rival)));
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(['committed', ...Array(5).fill('lost')]);
    });

    it('counts as committed if it is repeated after a lost response', async () => {
      const run = await begin();
      const made = change(run).writeStep(held(0)).seal();
      await bench.store.commit(made);
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      expect((await loaded(run)).run.seq).toBe(2);
    });

    it('counts as committed even if the run was changed since, and changes nothing then', async () => {
      const run = await begin();
      const made = change(run).seal();
      await bench.store.commit(made);
      const next = cancel(made.run);
      await bench.store.commit(next);
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      expect((await loaded(run)).run).toEqual(next.run);
    });

    it('is lost when a step is held under another fencing number than its writer has read', async () => {
      const run = await begin();
      const first = change(run).writeStep(held(0, 2)).seal();
      await bench.store.commit(first);
      const claimed = change(first.run).writeStep(held(0, 3), 2).seal();
      await bench.store.commit(claimed);
      const staleWorker = change(first.run, later(AT, 1)).writeStep(held(0, 4), 2).seal();
      expect(await bench.store.commit(staleWorker)).toEqual({ outcome: 'lost' });
      expect((await loaded(run)).run.seq).toBe(3);
      const holder = change(claimed.run).writeStep(held(0, 4), 3).seal();
      expect(await bench.store.commit(holder)).toEqual({ outcome: 'committed' });
      expect((await loaded(run)).steps).toEqual([held(0, 4)]);
    });

    it('is lost when a step that it creates already exists', async () => {
      const run = await begin();
      await bench.store.commit(change(run).writeStep(held(0)).seal());
      const second = change(run, later(AT, 1)).writeStep(held(0)).seal();
      expect(await bench.store.commit(second)).toEqual({ outcome: 'lost' });
    });

    it('returns steps in order, and copies what it stores', async () => {
      const run = await begin();
      const draft = change(run);
      const output = { list: ['kept'] };
      const done = { ...held(2), status: 'succeeded', output, completedAt: AT } as const;
      for (const step of [done, held(0), held(11), held(1)]) draft.writeStep(step);
      await bench.store.commit(draft.seal());
      output.list.push('changed by the caller');
      const { steps } = await loaded(run);
      expect(steps.map(({ index }) => index)).toEqual([0, 1, 2, 11]);
      expect(steps[2]).toMatchObject({ output: { list: ['kept'] } });
      // A store may also return frozen rows.
      Reflect.set(steps[0] ?? {}, 'id', 'changed by a reader');
      expect((await loaded(run)).steps[0]?.id).toBe('step_0');
    });

    it('refuses a transaction that names one row twice', async () => {
      const run = await begin();
      const twice = change(run)
        .writeReceipt(intent(run), 'free')
        .writeReceipt(intent(run, { stepIndex: 1 }), 'free');
      await expect(bench.store.commit(twice.seal())).rejects.toThrow();
      expect((await loaded(run)).run.seq).toBe(1);
    });
  });
}
