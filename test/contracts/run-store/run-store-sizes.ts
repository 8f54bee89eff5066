import { describe, expect, it } from 'vitest';
import type { Approval } from '../../../lambdas/run/approval.ts';
import { later } from '../../../lambdas/run/lease.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { RunningStep } from '../../../lambdas/run/step.ts';
import { STORY_BEGINS_AT as AT } from '../../fakes/fake-clock.ts';
import { hebrewNoise, noise } from '../../fakes/noise.ts';
import { accepted } from '../../fakes/story.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { held, intent, type RunStoreBench, requested, succeeded } from './run-store-bench.ts';

/** Texts: one that exceeds a row even compressed, and one of which a row has space for one but not for two. */
const TOO_MANY_LETTERS = 600_000;
const MANY_LETTERS = 350_000;

/** As much as a card can show: 40 fields of 3,000 letters, each of two bytes. */
const fortyFields = (seed: string) =>
  Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`field_${n}`, hebrewNoise(`${seed} ${n}`, 3_000)]));

/** How large rows and transactions may be. */
export function describeSizes(bench: RunStoreBench): void {
  const { begin, loaded, change, newTenant, newRunId } = bench;
  const large = (index: number, letters: number): RunningStep => ({
    ...held(index),
    input: { text: noise('input', letters) },
  });

  describe('sizes', () => {
    const before = fortyFields('before');
    const after = fortyFields('after');
    const action = { tool: 'servicenow.incident.update', target: 'sn:x', key: 'key', fields: after };
    const gated = (run: Run) => requested(run, { before, after, action: action as unknown as Approval['action'] });
    const step: RunningStep = { ...held(0), input: after, expects: before };

    it('40 fields of 3,000 Hebrew letters, now and then, are stored completely in step, approval and receipt', async () => {
      const run = await begin();
      const written = { ...succeeded(intent(run)), before, output: after } as Receipt;
      const made = change(run).writeStep(step).writeApproval(gated(run), 'new').writeReceipt(written, 'free').seal();
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      expect(await wholeRun(bench.store, run.tenant, run.runId)).toMatchObject({
        steps: [step],
        approvals: [gated(run)],
      });
      expect(await bench.store.receipts(run.tenant, ['key'])).toEqual([written]);
    });

    it('a large row is written on the same conditions as a small one', async () => {
      const run = await begin();
      const made = change(run).writeStep(step).writeApproval(gated(run), 'new').seal();
      await bench.store.commit(made);
      const stale = change(run, later(AT, 1)).writeStep({ ...step, leaseVersion: 2 }, 1);
      expect(await bench.store.commit(stale.seal())).toEqual({ outcome: 'lost' });
      expect((await loaded(run)).steps).toEqual([step]);
      const changed = { ...gated(run), revision: 2 };
      expect(await bench.store.commit(change(made.run).writeApproval(changed, 1).seal())).toEqual({
        outcome: 'committed',
      });
      expect(await bench.store.pendingApprovals(run.tenant, { limit: 5 })).toMatchObject({ items: [changed] });
    });

    it('a large receipt is changed as it was read', async () => {
      const run = await begin();
      const written = { ...succeeded(intent(run)), before } as Receipt;
      const made = change(run).writeReceipt(written, 'free').seal();
      await bench.store.commit(made);
      const [found = written] = await bench.store.receipts(run.tenant, ['key']);
      const next = (asRead: Receipt) =>
        bench.store.commit(
          change(made.run)
            .writeReceipt({ ...written, before: after } as Receipt, { asRead })
            .seal(),
        );
      expect(await next({ ...written, before: { ...before, field_39: '' } } as Receipt)).toEqual({
        outcome: 'receipt_held',
        receipt: written,
      });
      expect(await next(found)).toEqual({ outcome: 'committed' });
    });

    it('a payload of a megabyte is stored unchanged', async () => {
      const payload = Array.from({ length: 5_000 }, (_, id) => ({
        id,
        title: 'Checkout fails',
        labels: ['ä', '€', '😀'],
        long: 'x'.repeat(200),
      }));
      expect(JSON.stringify(payload).length).toBeGreaterThan(1024 * 1024);
      const run = await begin({ trigger: { payload } });
      expect((await loaded(run)).trigger.payload).toEqual(payload);
    });

    it('a row that is too large is refused by its name, and nothing is written', async () => {
      const run = await begin();
      const tooMuch = change(run).writeStep(held(1)).writeStep(large(0, TOO_MANY_LETTERS)).seal();
      await expect(bench.store.commit(tooMuch)).rejects.toMatchObject({ code: 'ROW_TOO_LARGE' });
      expect(await loaded(run)).toMatchObject({ run: { seq: 1 }, steps: [] });
    });

    it('rows that fit each but not in one transaction are refused by the same name, and nothing is written', async () => {
      const run = await begin();
      const draft = change(run);
      for (let index = 0; index < 17; index += 1) draft.writeStep(large(index, MANY_LETTERS));
      await expect(bench.store.commit(draft.seal())).rejects.toMatchObject({ code: 'ROW_TOO_LARGE' });
      expect(await loaded(run)).toMatchObject({ run: { seq: 1 }, steps: [] });
      const fewer = change(run);
      for (let index = 0; index < 14; index += 1) fewer.writeStep(large(index, MANY_LETTERS));
      expect(await bench.store.commit(fewer.seal())).toEqual({ outcome: 'committed' });
    });

    it('a delivery that is too large for a row starts no run, and is not recorded', async () => {
      const tenant = newTenant();
      const { ingest, run } = accepted({ tenant, runId: newRunId() });
      const trigger = { ...ingest.trigger, payload: noise('payload', TOO_MANY_LETTERS) };
      await expect(bench.store.ingest({ ...ingest, trigger })).rejects.toMatchObject({ code: 'ROW_TOO_LARGE' });
      expect(await bench.store.load(tenant, run.runId)).toBeUndefined();
      expect(await bench.store.ingest(ingest)).toEqual({ outcome: 'created' });
    });
  });
}
