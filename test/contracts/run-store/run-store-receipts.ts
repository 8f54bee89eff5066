import { describe, expect, it } from 'vitest';
import { later } from '../../../lambdas/run/lease.ts';
import type { IntentReceipt, Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Step } from '../../../lambdas/run/step.ts';
import { STORY_BEGINS_AT as AT } from '../../fakes/fake-clock.ts';
import { failed, held, intent, MINUTE_MS, type RunStoreBench, succeeded } from './run-store-bench.ts';

/** Writes and who may settle them. */
export function describeReceiptsAndLeases(bench: RunStoreBench): void {
  const { newTenant, begin, loaded, change } = bench;

  describe('receipts', () => {
    /** Another run of the same tenant has written this receipt. */
    async function rivalsWith(settled: (receipt: IntentReceipt) => Receipt): Promise<{ run: Run; held: Receipt }> {
      const other = await begin();
      const open = change(other).writeReceipt(intent(other), 'free').seal();
      await bench.store.commit(open);
      const held = settled(intent(other));
      if (held.outcome !== 'intent') {
        expect(await bench.store.commit(change(open.run).writeReceipt(held, 'ours').seal())).toEqual({
          outcome: 'committed',
        });
      }
      return { run: await begin({ tenant: other.tenant }), held };
    }
    const claim = (run: Run) => bench.store.commit(change(run).writeReceipt(intent(run), 'free').seal());

    it('a success of another run holds its key, and nothing is written', async () => {
      const { run, held } = await rivalsWith(succeeded);
      expect(await claim(run)).toEqual({ outcome: 'receipt_held', receipt: held });
      expect((await loaded(run)).run.seq).toBe(1);
    });

    it('an open intent of another run holds its key', async () => {
      const { run, held } = await rivalsWith((receipt) => receipt);
      expect(await claim(run)).toEqual({ outcome: 'receipt_held', receipt: held });
    });

    it('an unknown outcome of another run holds its key', async () => {
      const { run, held } = await rivalsWith((receipt) => failed(receipt, 'unknown'));
      expect(await claim(run)).toEqual({ outcome: 'receipt_held', receipt: held });
    });

    it('a failed write leaves its key free', async () => {
      const { run } = await rivalsWith((receipt) => failed(receipt, 'failed'));
      expect(await claim(run)).toEqual({ outcome: 'committed' });
      expect(await bench.store.receipts(run.tenant, ['key'])).toEqual([intent(run)]);
    });

    it.each(['intent', 'unknown'] as const)('a step claims its own earlier %s', async (outcome) => {
      const run = await begin();
      const first = change(run).writeReceipt(intent(run), 'free').seal();
      await bench.store.commit(first);
      let latest = first.run;
      if (outcome === 'unknown') {
        const settled = change(latest)
          .writeReceipt(failed(intent(run), 'unknown'), 'ours')
          .seal();
        await bench.store.commit(settled);
        latest = settled.run;
      }
      const again = change(latest)
        .writeReceipt(intent(run, { leaseVersion: 2 }), 'free')
        .seal();
      expect(await bench.store.commit(again)).toEqual({ outcome: 'committed' });
    });

    it('another step of the same run does not claim its open intent', async () => {
      const run = await begin();
      const first = change(run).writeReceipt(intent(run), 'free').seal();
      await bench.store.commit(first);
      const other = change(first.run)
        .writeReceipt(intent(run, { stepIndex: 1 }), 'free')
        .seal();
      expect(await bench.store.commit(other)).toEqual({ outcome: 'receipt_held', receipt: intent(run) });
    });

    it('its own success holds the key too: a write that happened is not made again', async () => {
      const run = await begin();
      const first = change(run).writeReceipt(intent(run), 'free').seal();
      await bench.store.commit(first);
      const done = change(first.run)
        .writeReceipt(succeeded(intent(run)), 'ours')
        .seal();
      await bench.store.commit(done);
      expect(await claim(done.run)).toEqual({ outcome: 'receipt_held', receipt: succeeded(intent(run)) });
    });

    it('an outcome settles only the intent of the same claim', async () => {
      const run = await begin();
      const first = change(run)
        .writeReceipt(intent(run, { leaseVersion: 2 }), 'free')
        .seal();
      await bench.store.commit(first);
      const staleWorker = change(first.run)
        .writeReceipt(succeeded(intent(run, { leaseVersion: 1 })), 'ours')
        .seal();
      expect(await bench.store.commit(staleWorker)).toEqual({ outcome: 'lost' });
      expect(await bench.store.receipts(run.tenant, ['key'])).toMatchObject([{ outcome: 'intent', leaseVersion: 2 }]);
    });

    describe('that are changed as they were read', () => {
      /** A change of the receipt by another run, in a commit with other changes. */
      const rest = (run: Run, found: Receipt) =>
        change(run)
          .writeStep(held(0))
          .writeReceipt({ ...found, reusedBy: run.runId } as Receipt, { asRead: found })
          .seal();
      const read = async (tenant: string) => {
        const [found] = await bench.store.receipts(tenant, ['key']);
        if (!found) throw new Error('there is no receipt');
        return found;
      };

      it('are written only if they have the expected state, also those of other runs', async () => {
        const { run, held } = await rivalsWith(succeeded);
        expect(await bench.store.commit(rest(run, await read(run.tenant)))).toEqual({ outcome: 'committed' });
        expect(await read(run.tenant)).toEqual({ ...held, reusedBy: run.runId });
        expect((await loaded(run)).steps).toHaveLength(1);
      });

      it('are written in the state that the run itself has just stored, without another read', async () => {
        const { run, held } = await rivalsWith(succeeded);
        const first = rest(run, held);
        await bench.store.commit(first);
        const ours = first.receipts[0]?.receipt;
        const again = change(first.run)
          .writeReceipt(held, { asRead: ours ?? held })
          .seal();
        expect(await bench.store.commit(again)).toEqual({ outcome: 'committed' });
        expect(await read(run.tenant)).toEqual(held);
      });

      it('hold their key if the commit of another run was first, and nothing is written', async () => {
        const { run, held } = await rivalsWith(succeeded);
        const first = await begin({ tenant: run.tenant });
        await bench.store.commit(rest(first, held));
        expect(await bench.store.commit(rest(run, held))).toEqual({
          outcome: 'receipt_held',
          receipt: { ...held, reusedBy: first.runId },
        });
        expect(await loaded(run)).toMatchObject({ run: { seq: 1 }, steps: [] });
      });

      it('hold their key if a single word of them has changed', async () => {
        const { run, held } = await rivalsWith(succeeded);
        const otherwise = { ...held, output: { labels: ['triages'] } } as Receipt;
        expect(await bench.store.commit(rest(run, otherwise))).toEqual({ outcome: 'receipt_held', receipt: held });
        expect(await read(run.tenant)).toEqual(held);
      });

      it('are lost if they do not exist', async () => {
        const run = await begin();
        expect(await bench.store.commit(rest(run, succeeded(intent(run))))).toEqual({ outcome: 'lost' });
        expect(await bench.store.receipts(run.tenant, ['key'])).toEqual([]);
      });

      it('stay unchanged if another part of the commit is refused', async () => {
        const { run, held } = await rivalsWith(succeeded);
        const stale = rest(run, held);
        await bench.store.commit(change(run, later(AT, 1)).seal());
        expect(await bench.store.commit(stale)).toEqual({ outcome: 'lost' });
        expect(await read(run.tenant)).toEqual(held);
      });

      it('have one winner among concurrent commits', async () => {
        const { run, held } = await rivalsWith(succeeded);
        const rivals = await Promise.all(Array.from({ length: 4 }, () => begin({ tenant: run.tenant })));
        const results = await Promise.all(rivals.map((rival) => bench.store.commit(rest(rival, held))));
        const outcomes = results.map(({ outcome }) => outcome).sort();
        expect(outcomes).toEqual(['committed', ...Array(3).fill('receipt_held')]);
      });
    });

    it('are found by tenant and key, each once, and what is missing is left out', async () => {
      const { run, held } = await rivalsWith(succeeded);
      expect(await bench.store.receipts(run.tenant, ['key', 'nothing', 'key'])).toEqual([held]);
      expect(await bench.store.receipts(newTenant(), ['key'])).toEqual([]);
      expect(await bench.store.receipts(run.tenant, [])).toEqual([]);
    });
  });

  describe('leases', () => {
    const until = later(AT, 10 * MINUTE_MS);
    async function holding(): Promise<Run> {
      const run = await begin();
      const made = change(run).writeStep(held(0, 2)).seal();
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      return made.run;
    }

    it('are extended by their owner, and nothing else of the run changes', async () => {
      const run = await holding();
      expect(await bench.store.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(true);
      const now = await loaded(run);
      expect(now.steps).toEqual([{ ...held(0, 2), lease: { owner: 'lease_1', expiresAt: until } }]);
      expect(now.run).toEqual(run);
    });

    it.each([1, 3])('are not extended with fencing number %i if the current one is 2', async (leaseVersion) => {
      const run = await holding();
      expect(await bench.store.renewLease(run.tenant, run.runId, held(0, leaseVersion), until)).toBe(false);
      expect((await loaded(run)).steps).toEqual([held(0, 2)]);
    });

    it('are not extended after the step has ended', async () => {
      const run = await holding();
      const { lease: _over, startedAt: _then, ...facts } = held(0, 2);
      const done = { ...facts, status: 'succeeded', output: null, completedAt: AT } as const;
      await bench.store.commit(change(run).writeStep(done, 2).seal());
      expect(await bench.store.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(false);
      expect((await loaded(run)).steps).toMatchObject([{ status: 'succeeded' }]);
    });

    /** Another worker claims the step, or somebody ends it: both take the lease from its holder. */
    const takenBy: [string, Step][] = [
      ['another worker', held(0, 3)],
      ['a person', { ...held(0, 2), status: 'canceled', completedAt: AT }],
    ];

    it.each(takenBy)('are not extended after %s took them, also if they were before', async (_who, step) => {
      for (const renewals of [0, 1, 2]) {
        const run = await holding();
        const renew = () => bench.store.renewLease(run.tenant, run.runId, held(0, 2), until);
        for (let each = 0; each < renewals; each += 1) expect(await renew()).toBe(true);
        expect(await bench.store.commit(change(run).writeStep(step, 2).seal())).toEqual({ outcome: 'committed' });
        expect(await renew()).toBe(false);
        expect((await loaded(run)).steps).toEqual([step]);
      }
    });

    it('have one winner if they are extended and taken at the same time', async () => {
      const run = await holding();
      const [renewed, taken] = await Promise.all([
        bench.store.renewLease(run.tenant, run.runId, held(0, 2), until),
        bench.store.commit(change(run).writeStep(held(0, 3), 2).seal()),
      ]);
      expect([renewed, taken.outcome]).toEqual([expect.any(Boolean), 'committed']);
      expect(await bench.store.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(false);
      expect((await loaded(run)).steps).toEqual([held(0, 3)]);
    });

    it('of the next worker are extended, also after earlier ones', async () => {
      const run = await holding();
      const renew = (leaseVersion: number) =>
        bench.store.renewLease(run.tenant, run.runId, held(0, leaseVersion), until);
      await renew(2);
      const next = change(run).writeStep(held(0, 3), 2).seal();
      await bench.store.commit(next);
      expect([await renew(3), await renew(3), await renew(2)]).toEqual([true, true, false]);
      expect((await loaded(run)).steps).toMatchObject([{ leaseVersion: 3, lease: { expiresAt: until } }]);
      const again = change(next.run).writeStep(held(0, 4), 3).seal();
      await bench.store.commit(again);
      expect((await loaded(run)).steps).toEqual([held(0, 4)]);
    });

    it('of a step that many commits came after are extended, and the step is found alone', async () => {
      let run = await holding();
      for (let count = 1; count <= 30; count += 1) {
        const next = change(run, later(AT, count))
          .writeStep(held(1, count), count - 1)
          .seal();
        expect(await bench.store.commit(next)).toEqual({ outcome: 'committed' });
        run = next.run;
      }
      expect(await bench.store.runAndStep(run.tenant, run.runId, 0)).toEqual({ run, step: held(0, 2) });
      expect(await bench.store.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(true);
      const renewed = { ...held(0, 2), lease: { owner: 'lease_1', expiresAt: until } };
      expect(await bench.store.runAndStep(run.tenant, run.runId, 0)).toEqual({ run, step: renewed });
      expect(await bench.store.runAndStep(run.tenant, run.runId, 7)).toEqual({ run });
    });

    it('of a step that was never started are not extended', async () => {
      const run = await begin();
      expect(await bench.store.renewLease(run.tenant, run.runId, held(0, 0), until)).toBe(false);
      expect((await loaded(run)).steps).toEqual([]);
    });
  });
}
