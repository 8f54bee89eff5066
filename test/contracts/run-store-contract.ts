import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { APPROVAL_SCHEMA_VERSION, type Approval } from '../../lambdas/approval/approval.ts';
import { type OutboxEntry, promised } from '../../lambdas/outbox/outbox.ts';
import { assertChain } from '../../lambdas/run/commit.ts';
import { recordedError } from '../../lambdas/run/errors.ts';
import { later } from '../../lambdas/run/lease.ts';
import { type IntentReceipt, RECEIPT_SCHEMA_VERSION, type Receipt } from '../../lambdas/run/receipt.ts';
import type { Run, RunStatus } from '../../lambdas/run/run.ts';
import { DUE_SHARDS, type DueItem, type EvidenceRecord, type RunStore } from '../../lambdas/run/run-store.ts';
import { type RunningStep, STEP_SCHEMA_VERSION } from '../../lambdas/run/step.ts';
import { STORY_BEGINS_AT as AT } from '../fakes/fake-clock.ts';
import { type AcceptedOptions, accepted } from '../fakes/story.ts';
import { ChangeDraft } from './change-draft.ts';

const BY = { initiator: 'system', actor: 'contract' } as const;
const MINUTE_MS = 60_000;

export function describeRunStoreContract(
  name: string,
  open: () => Promise<{ store: RunStore; close(): Promise<void> }>,
): void {
  describe(`${name} as a run store`, () => {
    let store: RunStore;
    let close: () => Promise<void>;
    let tenants = 0;
    let runs = 0;
    beforeAll(async () => {
      ({ store, close } = await open());
    });
    afterAll(() => close());

    /** Every test has tenants of its own, so that all share one table. */
    const newTenant = () => {
      tenants += 1;
      return `tenant-${tenants}`;
    };
    const newRunId = () => {
      runs += 1;
      return `run_${runs.toString(16).padStart(8, '0')}`;
    };

    async function begin(options: AcceptedOptions = {}): Promise<Run> {
      const { run, ingest } = accepted({ tenant: newTenant(), runId: newRunId(), ...options });
      expect(await store.ingest(ingest)).toEqual({ outcome: 'created' });
      return run;
    }

    async function loaded({ tenant, runId }: Run) {
      const found = await store.load(tenant, runId);
      if (!found) throw new Error(`run ${runId} is not there`);
      return found;
    }

    const change = (run: Run, at = later(AT, MINUTE_MS)) => new ChangeDraft(run, at);

    const cancel = (run: Run, at?: string) => change(run, at).move('canceled', BY).seal();

    async function dueItems(now: string): Promise<DueItem[]> {
      const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => store.due(shard, now, 1_000));
      return (await Promise.all(shards)).flat();
    }
    const dueRuns = async (now: string, tenant: string) =>
      (await dueItems(now)).flatMap((item) => (item.kind === 'run' && item.tenant === tenant ? [item.runId] : []));
    const dueEntries = async (now: string, tenant: string) =>
      (await dueItems(now)).flatMap((item) =>
        item.kind === 'outbox' && item.entry.tenant === tenant ? [item.entry] : [],
      );

    describe('taking in a delivery', () => {
      it('creates the run with its trigger and first commit', async () => {
        const { run, trigger, commit, ingest } = accepted({ tenant: newTenant(), runId: newRunId() });
        expect(await store.ingest(ingest)).toEqual({ outcome: 'created' });
        expect(await store.load(run.tenant, run.runId)).toEqual({ run, trigger, steps: [] });
        expect(await store.listCommits(run.tenant, run.runId, { after: 0, limit: 10 })).toEqual([commit]);
      });

      it('keeps a payload of any shape as it was', async () => {
        const payload = {
          nested: [{ deep: { text: 'ä € 😀', empty: '', none: null, zero: 0, list: [] } }],
          big: 2 ** 53,
        };
        const run = await begin({ trigger: { payload } });
        expect((await loaded(run)).trigger.payload).toEqual(payload);
      });

      it('answers the same delivery with the runs of the first, and creates nothing', async () => {
        const run = await begin({ key: 'github:one' });
        const again = accepted({ tenant: run.tenant, runId: newRunId(), key: 'github:one' });
        const result = await store.ingest(again.ingest);
        expect(result).toMatchObject({
          outcome: 'duplicate',
          record: { runIds: [run.runId], requestHash: again.ingest.records[0]?.requestHash },
        });
        expect(await store.load(run.tenant, again.run.runId)).toBeUndefined();
      });

      it('recognises its own transaction, applied with its answer lost', async () => {
        const { ingest } = accepted({ tenant: newTenant(), runId: newRunId() });
        await store.ingest(ingest);
        expect(await store.ingest(ingest)).toEqual({ outcome: 'created' });
      });

      it('lets exactly one of many identical deliveries through', async () => {
        const tenant = newTenant();
        const deliveries = Array.from({ length: 8 }, () =>
          accepted({ tenant, runId: newRunId(), key: 'github:storm' }),
        );
        const results = await Promise.all(deliveries.map(({ ingest }) => store.ingest(ingest)));
        expect(results.filter(({ outcome }) => outcome === 'created')).toHaveLength(1);
        expect((await store.listRuns(tenant, { limit: 10 })).items).toHaveLength(1);
      });

      it('replaces an expired record although it can still be read', async () => {
        const first = await begin({ key: 'github:old', expiresAt: later(AT, MINUTE_MS) });
        const at = (ms: number) =>
          accepted({ tenant: first.tenant, runId: newRunId(), key: 'github:old', at: later(AT, ms) });
        expect(await store.ingest(at(MINUTE_MS - 1).ingest)).toMatchObject({ outcome: 'duplicate' });
        expect(await store.ingest(at(MINUTE_MS).ingest)).toEqual({ outcome: 'created' });
        expect(await store.ingest(at(MINUTE_MS + 1).ingest)).toMatchObject({ outcome: 'duplicate' });
      });

      const burst = (tenant: string, key: string, at: string) => {
        const taken = accepted({ tenant, runId: newRunId(), key, at });
        const [own] = taken.ingest.records;
        if (!own) throw new Error('a delivery has a record of its own');
        const second = { ...own, key: 'github:burst', expiresAt: later(at, 5_000) };
        return { ...taken, ingest: { ...taken.ingest, records: [own, second] } };
      };

      it('answers a second delivery of a burst with the runs of the first, and remembers nothing of it', async () => {
        const tenant = newTenant();
        const first = burst(tenant, 'github:first', AT);
        expect(await store.ingest(first.ingest)).toEqual({ outcome: 'created' });
        const second = burst(tenant, 'github:second', later(AT, 4_999));
        expect(await store.ingest(second.ingest)).toMatchObject({
          outcome: 'duplicate',
          record: { key: 'github:burst', runIds: [first.run.runId] },
        });
        const afterwards = burst(tenant, 'github:second', later(AT, 5_000));
        expect(await store.ingest(afterwards.ingest)).toEqual({ outcome: 'created' });
      });

      it('names the delivery before the burst when both are known', async () => {
        const tenant = newTenant();
        await store.ingest(burst(tenant, 'github:first', AT).ingest);
        const again = await store.ingest(burst(tenant, 'github:first', later(AT, 1)).ingest);
        expect(again).toMatchObject({ outcome: 'duplicate', record: { key: 'github:first' } });
      });

      it('recognises its own transaction with several records', async () => {
        const { ingest } = burst(newTenant(), 'github:first', AT);
        await store.ingest(ingest);
        expect(await store.ingest(ingest)).toEqual({ outcome: 'created' });
      });

      it('creates all runs of a delivery or none', async () => {
        const taken = await begin();
        const { ingest } = accepted({ tenant: taken.tenant, runId: newRunId(), key: 'github:two-runs' });
        const other = accepted({ tenant: taken.tenant, runId: taken.runId, key: 'github:two-runs' });
        const both = { ...ingest, runs: [...ingest.runs, ...other.ingest.runs] };
        await expect(store.ingest(both)).rejects.toThrow(/taken/);
        expect(await store.load(taken.tenant, ingest.runs[0]?.run.runId ?? '')).toBeUndefined();
      });
    });

    describe('committing', () => {
      it('moves the run and its chain on together', async () => {
        const run = await begin();
        const first = change(run).seal();
        expect(await store.commit(first)).toEqual({ outcome: 'committed' });
        const second = cancel(first.run);
        expect(await store.commit(second)).toEqual({ outcome: 'committed' });
        const now = await loaded(run);
        expect(now.run).toEqual(second.run);
        const commits = await store.listCommits(run.tenant, run.runId, { after: 0, limit: 10 });
        expect(commits.map(({ seq }) => seq)).toEqual([1, 2, 3]);
        assertChain(now.run, commits);
      });

      it('is lost to whoever moved the run first, and then writes nothing', async () => {
        const run = await begin();
        await store.commit(change(run, later(AT, 1)).seal());
        const stale = change(run, later(AT, 2)).writeStep(held(0), 'new').seal();
        expect(await store.commit(stale)).toEqual({ outcome: 'lost' });
        expect((await loaded(run)).steps).toEqual([]);
      });

      it('has one winner among rivals', async () => {
        const run = await begin();
        const rivals = Array.from({ length: 6 }, (_, index) => change(run, later(AT, index + 1)).seal());
        const results = await Promise.all(rivals.map((rival) => store.commit(rival)));
        expect(results.map(({ outcome }) => outcome).sort()).toEqual(['committed', ...Array(5).fill('lost')]);
      });

      it('counts as committed when it is made again because its answer was lost', async () => {
        const run = await begin();
        const made = change(run).writeStep(held(0), 'new').seal();
        await store.commit(made);
        expect(await store.commit(made)).toEqual({ outcome: 'committed' });
        expect((await loaded(run)).run.seq).toBe(2);
      });

      it('counts as committed even if the run has moved on since, and does not turn it back', async () => {
        const run = await begin();
        const made = change(run).seal();
        await store.commit(made);
        const next = cancel(made.run);
        await store.commit(next);
        expect(await store.commit(made)).toEqual({ outcome: 'committed' });
        expect((await loaded(run)).run).toEqual(next.run);
      });

      it('is lost when a step is held under another fencing number', async () => {
        const run = await begin();
        const first = change(run).writeStep(held(0, 3), 'new').seal();
        await store.commit(first);
        const zombie = change(first.run).writeStep(held(0, 4), 2).seal();
        expect(await store.commit(zombie)).toEqual({ outcome: 'lost' });
        expect((await loaded(run)).run.seq).toBe(2);
        const holder = change(first.run).writeStep(held(0, 4), 3).seal();
        expect(await store.commit(holder)).toEqual({ outcome: 'committed' });
        expect((await loaded(run)).steps).toEqual([held(0, 4)]);
      });

      it('is lost when a step it means to create is there', async () => {
        const run = await begin();
        const first = change(run).writeStep(held(0), 'new').seal();
        await store.commit(first);
        expect(await store.commit(change(first.run).writeStep(held(0), 'new').seal())).toEqual({ outcome: 'lost' });
      });

      it('hands back steps in their order, and keeps what it was given from later changes', async () => {
        const run = await begin();
        const draft = change(run);
        const output = { list: ['kept'] };
        const done = { ...held(2), status: 'succeeded', output, completedAt: AT } as const;
        for (const step of [done, held(0), held(11), held(1)]) draft.writeStep(step, 'new');
        await store.commit(draft.seal());
        output.list.push('changed by the caller');
        const { steps } = await loaded(run);
        expect(steps.map(({ index }) => index)).toEqual([0, 1, 2, 11]);
        expect(steps[2]).toMatchObject({ output: { list: ['kept'] } });
        if (steps[0]) steps[0].id = 'changed by a reader';
        expect((await loaded(run)).steps[0]?.id).toBe('step_0');
      });

      it('refuses a transaction that names one row twice', async () => {
        const run = await begin();
        const twice = change(run)
          .writeReceipt(intent(run), 'free')
          .writeReceipt(intent(run, { stepIndex: 1 }), 'free');
        await expect(store.commit(twice.seal())).rejects.toThrow();
        expect((await loaded(run)).run.seq).toBe(1);
      });
    });

    describe('receipts', () => {
      /** Another run of the same tenant has left this receipt behind. */
      async function rivalsWith(settled: (receipt: IntentReceipt) => Receipt): Promise<{ run: Run; held: Receipt }> {
        const other = await begin();
        const open = change(other).writeReceipt(intent(other), 'free').seal();
        await store.commit(open);
        const held = settled(intent(other));
        if (held.outcome !== 'intent') {
          expect(await store.commit(change(open.run).writeReceipt(held, 'ours').seal())).toEqual({
            outcome: 'committed',
          });
        }
        return { run: await begin({ tenant: other.tenant }), held };
      }
      const claim = (run: Run) => store.commit(change(run).writeReceipt(intent(run), 'free').seal());

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
        expect(await store.receipts(run.tenant, ['key'])).toEqual([intent(run)]);
      });

      it.each(['intent', 'unknown'] as const)('a step takes up its own earlier %s', async (outcome) => {
        const run = await begin();
        const first = change(run).writeReceipt(intent(run), 'free').seal();
        await store.commit(first);
        let latest = first.run;
        if (outcome === 'unknown') {
          const settled = change(latest)
            .writeReceipt(failed(intent(run), 'unknown'), 'ours')
            .seal();
          await store.commit(settled);
          latest = settled.run;
        }
        const again = change(latest)
          .writeReceipt(intent(run, { leaseVersion: 2 }), 'free')
          .seal();
        expect(await store.commit(again)).toEqual({ outcome: 'committed' });
      });

      it('another step of the same run does not take up its open intent', async () => {
        const run = await begin();
        const first = change(run).writeReceipt(intent(run), 'free').seal();
        await store.commit(first);
        const other = change(first.run)
          .writeReceipt(intent(run, { stepIndex: 1 }), 'free')
          .seal();
        expect(await store.commit(other)).toEqual({ outcome: 'receipt_held', receipt: intent(run) });
      });

      it('its own success holds the key too: a write that happened is not made again', async () => {
        const run = await begin();
        const first = change(run).writeReceipt(intent(run), 'free').seal();
        await store.commit(first);
        const done = change(first.run)
          .writeReceipt(succeeded(intent(run)), 'ours')
          .seal();
        await store.commit(done);
        expect(await claim(done.run)).toEqual({ outcome: 'receipt_held', receipt: succeeded(intent(run)) });
      });

      it('an outcome settles only the intent of the same claim', async () => {
        const run = await begin();
        const first = change(run)
          .writeReceipt(intent(run, { leaseVersion: 2 }), 'free')
          .seal();
        await store.commit(first);
        const zombie = change(first.run)
          .writeReceipt(succeeded(intent(run, { leaseVersion: 1 })), 'ours')
          .seal();
        expect(await store.commit(zombie)).toEqual({ outcome: 'lost' });
        expect(await store.receipts(run.tenant, ['key'])).toMatchObject([{ outcome: 'intent', leaseVersion: 2 }]);
      });

      it('are found by tenant and key, each once, and what is missing is left out', async () => {
        const { run, held } = await rivalsWith(succeeded);
        expect(await store.receipts(run.tenant, ['key', 'nothing', 'key'])).toEqual([held]);
        expect(await store.receipts(newTenant(), ['key'])).toEqual([]);
        expect(await store.receipts(run.tenant, [])).toEqual([]);
      });
    });

    describe('leases', () => {
      const until = later(AT, 10 * MINUTE_MS);
      async function holding(): Promise<Run> {
        const run = await begin();
        const made = change(run).writeStep(held(0, 2), 'new').seal();
        expect(await store.commit(made)).toEqual({ outcome: 'committed' });
        return made.run;
      }

      it('are prolonged by their holder, and nothing else of the run changes', async () => {
        const run = await holding();
        expect(await store.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(true);
        const now = await loaded(run);
        expect(now.steps).toEqual([{ ...held(0, 2), lease: { owner: 'lease_1', expiresAt: until } }]);
        expect(now.run).toEqual(run);
      });

      it.each([1, 3])('are not prolonged under fencing number %i when they are held under 2', async (leaseVersion) => {
        const run = await holding();
        expect(await store.renewLease(run.tenant, run.runId, held(0, leaseVersion), until)).toBe(false);
        expect((await loaded(run)).steps).toEqual([held(0, 2)]);
      });

      it('are not prolonged once the step has ended', async () => {
        const run = await holding();
        const { lease: _over, startedAt: _then, ...facts } = held(0, 2);
        const done = { ...facts, status: 'succeeded', output: null, completedAt: AT } as const;
        await store.commit(change(run).writeStep(done, 2).seal());
        expect(await store.renewLease(run.tenant, run.runId, held(0, 2), until)).toBe(false);
        expect((await loaded(run)).steps).toMatchObject([{ status: 'succeeded' }]);
      });

      it('of a step that was never begun are not prolonged', async () => {
        const run = await begin();
        expect(await store.renewLease(run.tenant, run.runId, held(0, 0), until)).toBe(false);
        expect((await loaded(run)).steps).toEqual([]);
      });
    });

    describe('caps', () => {
      const slot = { shard: 0, workspace: 'default' };
      const take = (run: Run, max: number, place = slot) =>
        store.commit(change(run).cap({ kind: 'take_slot', slot: place, max }).seal());
      const running = async (tenant: string, shards = 1) => (await store.waitingLine(tenant, 10, shards)).running;

      it('hand out as many places as there are, and then nothing of the commit is written', async () => {
        const tenant = newTenant();
        const runs = [await begin({ tenant }), await begin({ tenant }), await begin({ tenant })];
        const taken = await Promise.all(runs.map((run) => take(run, 2)));
        expect(taken.map(({ outcome }) => outcome).sort()).toEqual(['committed', 'committed', 'no_room']);
        expect(await running(tenant)).toEqual({ default: 2 });
        const refused = runs[taken.findIndex(({ outcome }) => outcome === 'no_room')];
        if (refused) expect((await loaded(refused)).run.seq).toBe(1);
      });

      it('hand out a returned place again', async () => {
        const tenant = newTenant();
        const [first, second] = [await begin({ tenant }), await begin({ tenant })];
        const taken = change(first).cap({ kind: 'take_slot', slot, max: 1 }).seal();
        await store.commit(taken);
        expect(await take(second, 1)).toEqual({ outcome: 'no_room' });
        const returned = change(taken.run).cap({ kind: 'return_slot', slot }).seal();
        expect(await store.commit(returned)).toEqual({ outcome: 'committed' });
        expect(await take(second, 1)).toEqual({ outcome: 'committed' });
        expect(await running(tenant)).toEqual({ default: 1 });
      });

      it('take a place once although the commit is made again', async () => {
        const run = await begin();
        const made = change(run).cap({ kind: 'take_slot', slot, max: 5 }).seal();
        await store.commit(made);
        expect(await store.commit(made)).toEqual({ outcome: 'committed' });
        expect(await running(run.tenant)).toEqual({ default: 1 });
      });

      it('count each shard and workspace for itself', async () => {
        const tenant = newTenant();
        await take(await begin({ tenant }), 1);
        expect(await take(await begin({ tenant }), 1, { shard: 1, workspace: 'default' })).toEqual({
          outcome: 'committed',
        });
        await take(await begin({ tenant }), 2, { shard: 1, workspace: 'other' });
        expect(await running(tenant, 2)).toEqual({ default: 2, other: 1 });
        expect(await running(tenant, 1)).toEqual({ default: 1 });
      });

      it('count the starts of a minute', async () => {
        const tenant = newTenant();
        const start = async (minute: string) =>
          store.commit(
            change(await begin({ tenant }))
              .cap({ kind: 'count_start', minute, max: 2 })
              .seal(),
          );
        const minute = AT.slice(0, 16);
        expect([await start(minute), await start(minute), await start(minute)]).toEqual([
          { outcome: 'committed' },
          { outcome: 'committed' },
          { outcome: 'no_room' },
        ]);
        expect(await start('2026-01-02T03:05')).toEqual({ outcome: 'committed' });
      });

      it('let one run hold a key until it lets go', async () => {
        const tenant = newTenant();
        const [first, second] = [await begin({ tenant }), await begin({ tenant })];
        const take_key = (run: Run) => change(run).cap({ kind: 'take_key', key: 'k', runId: run.runId }).seal();
        const taken = take_key(first);
        expect(await store.commit(taken)).toEqual({ outcome: 'committed' });
        expect(await store.commit(take_key(second))).toEqual({ outcome: 'no_room' });
        const stolen = change(second).cap({ kind: 'release_key', key: 'k', runId: second.runId }).seal();
        expect(await store.commit(stolen)).toEqual({ outcome: 'no_room' });
        const released = change(taken.run).cap({ kind: 'release_key', key: 'k', runId: first.runId }).seal();
        expect(await store.commit(released)).toEqual({ outcome: 'committed' });
        expect(await store.commit(take_key(second))).toEqual({ outcome: 'committed' });
      });

      it('matter after a lost race and after a held receipt', async () => {
        const tenant = newTenant();
        const [other, run] = [await begin({ tenant }), await begin({ tenant })];
        await store.commit(
          change(other).writeReceipt(intent(other), 'free').cap({ kind: 'take_slot', slot, max: 1 }).seal(),
        );
        const full = { kind: 'take_slot', slot, max: 1 } as const;
        const both = change(run).writeReceipt(intent(run), 'free').cap(full).seal();
        expect(await store.commit(both)).toMatchObject({ outcome: 'receipt_held' });
        await store.commit(change(run).seal());
        expect(await store.commit(change(run, later(AT, 1)).cap(full).seal())).toEqual({ outcome: 'lost' });
      });

      it('show who waits, longest first, and nobody who has started', async () => {
        const tenant = newTenant();
        const runs = [2, 0, 1].map((minutes) => ({
          tenant,
          at: later(AT, minutes * MINUTE_MS),
          workspace: `w${minutes}`,
        }));
        const [newest, oldest, middle] = [await begin(runs[0]), await begin(runs[1]), await begin(runs[2])];
        const waiting = async (limit: number) => {
          const line = await store.waitingLine(tenant, limit, 1);
          return line.waiting.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
        };
        const shown = ({ runId, workspace, createdAt }: Run) => ({ runId, workspace, createdAt });
        expect(await waiting(10)).toEqual([oldest, middle, newest].map(shown));
        expect(await waiting(2)).toEqual([oldest, middle].map(shown));
        await store.commit(cancel(oldest));
        expect(await waiting(10)).toEqual([middle, newest].map(shown));
      });
    });

    describe('listing', () => {
      async function begun(count: number): Promise<{ tenant: string; ids: string[] }> {
        const tenant = newTenant();
        const ids = Array.from({ length: count }, newRunId);
        for (const [index, runId] of ids.entries()) await begin({ tenant, runId, at: later(AT, index * MINUTE_MS) });
        return { tenant, ids };
      }

      async function walk(tenant: string, query: { status?: RunStatus; limit: number }): Promise<string[]> {
        const seen: string[] = [];
        let after: string | undefined;
        do {
          const page = await store.listRuns(tenant, { ...query, after });
          expect(page.items.length).toBeLessThanOrEqual(query.limit);
          seen.push(...page.items.map(({ runId }) => runId));
          after = page.next;
        } while (after !== undefined);
        return seen;
      }

      it('shows the newest first', async () => {
        const { tenant, ids } = await begun(3);
        const { items, next } = await store.listRuns(tenant, { limit: 10 });
        expect(items.map(({ runId }) => runId)).toEqual(ids.toReversed());
        expect(next).toBeUndefined();
      });

      it.each([1, 2, 5, 6])('gives every run once in pages of %i', async (limit) => {
        const { tenant, ids } = await begun(5);
        expect(await walk(tenant, { limit })).toEqual(ids.toReversed());
      });

      it('gives every run once when all are of the same moment', async () => {
        const tenant = newTenant();
        const ids = Array.from({ length: 5 }, newRunId);
        for (const runId of ids) await begin({ tenant, runId });
        expect((await walk(tenant, { limit: 2 })).sort()).toEqual(ids);
      });

      it('by status shows only runs that are in it now', async () => {
        const { tenant, ids } = await begun(4);
        for (const runId of ids.slice(0, 3)) {
          const found = await store.load(tenant, runId);
          if (found) await store.commit(cancel(found.run));
        }
        expect(await walk(tenant, { status: 'canceled', limit: 2 })).toEqual(ids.slice(0, 3).toReversed());
        expect(await walk(tenant, { status: 'queued', limit: 2 })).toEqual(ids.slice(3));
        expect(await walk(tenant, { status: 'running', limit: 2 })).toEqual([]);
      });

      it('shows a tenant nothing of another', async () => {
        const { ids } = await begun(1);
        const stranger = await begin();
        expect(await walk(stranger.tenant, { limit: 10 })).toEqual([stranger.runId]);
        expect(await store.load(stranger.tenant, ids[0] ?? '')).toBeUndefined();
      });

      it('gives commits after a number, oldest first, up to a limit', async () => {
        let run = await begin();
        for (let at = 1; at <= 11; at += 1) {
          const made = change(run, later(AT, at)).seal();
          await store.commit(made);
          run = made.run;
        }
        const seqs = async (after: number, limit: number) =>
          (await store.listCommits(run.tenant, run.runId, { after, limit })).map(({ seq }) => seq);
        expect(await seqs(0, 3)).toEqual([1, 2, 3]);
        expect(await seqs(8, 10)).toEqual([9, 10, 11, 12]);
        expect(await seqs(12, 10)).toEqual([]);
      });
    });

    it('keeps the same run id of two tenants apart', async () => {
      const runId = newRunId();
      const [mine, theirs] = [await begin({ runId, key: 'github:same' }), await begin({ runId, key: 'github:same' })];
      await store.commit(cancel(mine));
      expect((await loaded(mine)).run.status).toBe('canceled');
      expect((await loaded(theirs)).run).toEqual(theirs);
      expect(await store.listCommits(theirs.tenant, runId, { after: 0, limit: 10 })).toHaveLength(1);
    });

    describe('what is due', () => {
      it('is a run whose time has come, in the shard of its id and no other', async () => {
        const run = await begin({ dueAt: later(AT, MINUTE_MS) });
        expect(await dueRuns(later(AT, MINUTE_MS - 1), run.tenant)).toEqual([]);
        expect(await dueRuns(later(AT, MINUTE_MS), run.tenant)).toEqual([run.runId]);
      });

      it('is spread over the shards', async () => {
        const tenant = newTenant();
        for (let index = 0; index < 24; index += 1) await begin({ tenant, runId: newRunId() });
        const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => store.due(shard, later(AT, MINUTE_MS), 1_000));
        for (const items of await Promise.all(shards)) {
          expect(items.some((item) => item.kind === 'run' && item.tenant === tenant)).toBe(true);
        }
      });

      it('comes up to a limit, the oldest first', async () => {
        // Before everything else of this contract, so that in its shard these are the oldest.
        const runId = newRunId();
        const long = (hours: number) => later('2001-01-01T00:00:00.000Z', hours * 60 * MINUTE_MS);
        for (const hours of [3, 1, 2]) await begin({ runId, dueAt: long(hours), trigger: { event: `after-${hours}` } });
        const found = await Promise.all(Array.from({ length: DUE_SHARDS }, (_, shard) => store.due(shard, long(4), 2)));
        const tenantsFound = found.flat().flatMap((item) => (item.kind === 'run' ? [item.tenant] : []));
        const newest = tenants;
        expect(tenantsFound).toEqual([`tenant-${newest - 1}`, `tenant-${newest}`]);
      });

      it('is not a run without a time: a paused one is nobody’s to look at', async () => {
        const run = await begin();
        await store.commit(change(run).note({ dueAt: undefined }).seal());
        expect(await dueRuns('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      });

      it('follows the run: a changed due time counts, a terminal run is never due', async () => {
        const run = await begin();
        const later1 = change(run)
          .note({ dueAt: later(AT, 10 * MINUTE_MS) })
          .seal();
        await store.commit(later1);
        expect(await dueRuns(later(AT, 9 * MINUTE_MS), run.tenant)).toEqual([]);
        expect(await dueRuns(later(AT, 10 * MINUTE_MS), run.tenant)).toEqual([run.runId]);
        await store.commit(cancel(later1.run));
        expect(await dueRuns('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      });
    });

    describe('promises', () => {
      async function withPromise(): Promise<{ run: Run; entry: OutboxEntry }> {
        const run = await begin();
        const entry = promised({ kind: 'seal_evidence', tenant: run.tenant, runId: run.runId }, AT);
        const end = change(run).move('canceled', BY).promise(entry).seal();
        await store.commit(end);
        return { run: end.run, entry };
      }
      const soon = later(AT, 30_000);

      it('become due with the commit that made them', async () => {
        const { run, entry } = await withPromise();
        expect(await dueEntries(later(AT, 29_999), run.tenant)).toEqual([]);
        expect(await dueEntries(soon, run.tenant)).toEqual([entry]);
      });

      it('are counted by one of two sweepers', async () => {
        const { run, entry } = await withPromise();
        const next = later(soon, MINUTE_MS);
        const both = await Promise.all([store.bumpOutbox(entry, next), store.bumpOutbox(entry, next)]);
        expect(both.sort()).toEqual([false, true]);
        expect(await dueEntries(soon, run.tenant)).toEqual([]);
        expect(await dueEntries(next, run.tenant)).toEqual([{ ...entry, attempts: 1, dueAt: next }]);
      });

      it('given up on are never due again', async () => {
        const { run, entry } = await withPromise();
        expect(await store.bumpOutbox(entry, undefined)).toBe(true);
        expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      });

      it('to seal go with the record of the evidence; a second record changes nothing', async () => {
        const { run, entry } = await withPromise();
        const { tenant, runId } = run;
        expect(await store.evidence(tenant, runId)).toBeUndefined();
        await store.fulfilSeal(entry.id, tenant, runId, evidenceRecord('first'));
        await store.fulfilSeal(entry.id, tenant, runId, evidenceRecord('second'));
        expect(await store.evidence(tenant, runId)).toEqual(evidenceRecord('first'));
        expect(await dueEntries('2999-01-01T00:00:00.000Z', tenant)).toEqual([]);
        expect(await store.bumpOutbox(entry, soon)).toBe(false);
      });

      it('are cleared also when the evidence was recorded before', async () => {
        const { run, entry } = await withPromise();
        await store.fulfilSeal('another-entry', run.tenant, run.runId, evidenceRecord('first'));
        await store.fulfilSeal(entry.id, run.tenant, run.runId, evidenceRecord('second'));
        expect(await dueEntries(soon, run.tenant)).toEqual([]);
      });
    });

    describe('approvals', () => {
      async function withApproval(): Promise<{ run: Run; approval: Approval; entry: OutboxEntry }> {
        const run = await begin();
        const approval = requested(run);
        const { tenant, runId } = run;
        const entry = promised({ kind: 'start_approval', tenant, runId, approvalId: approval.approvalId }, AT);
        const made = change(run).writeApproval(approval, 'new').promise(entry).seal();
        expect(await store.commit(made)).toEqual({ outcome: 'committed' });
        return { run: made.run, approval, entry };
      }
      const read = ({ tenant, runId, approvalId }: Approval) => store.approval(tenant, runId, approvalId);

      it('are read by run and id, and only there', async () => {
        const { run, approval } = await withApproval();
        expect(await read(approval)).toEqual(approval);
        expect(await store.approval(run.tenant, run.runId, 'approval_other')).toBeUndefined();
        expect(await store.approval(newTenant(), run.runId, approval.approvalId)).toBeUndefined();
      });

      it('are notified when their execution holds a token, and the promise to start it goes', async () => {
        const { run, approval, entry } = await withApproval();
        expect(await store.fulfilApproval(entry.id, approval, 'task-token')).toBe(true);
        expect(await read(approval)).toEqual({ ...approval, status: 'notified' });
        expect(JSON.stringify(await read(approval))).not.toContain('task-token');
        expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      });

      it('may be held again: the same state is held twice with the same result', async () => {
        const { approval, entry } = await withApproval();
        await store.fulfilApproval(entry.id, approval, 'first-token');
        const notified = await read(approval);
        if (notified) await store.fulfilApproval(entry.id, notified, 'second-token');
        expect(await read(approval)).toEqual({ ...approval, status: 'notified' });
      });

      it('change only from the status their writer knew', async () => {
        const { run, approval, entry } = await withApproval();
        await store.fulfilApproval(entry.id, approval, 'task-token');
        const stale = change(run)
          .writeApproval({ ...approval, status: 'expired' }, 'requested')
          .seal();
        expect(await store.commit(stale)).toEqual({ outcome: 'lost' });
        const known = change(run)
          .writeApproval({ ...approval, status: 'expired' }, 'notified')
          .seal();
        expect(await store.commit(known)).toEqual({ outcome: 'committed' });
        expect((await read(approval))?.status).toBe('expired');
      });

      it('decided meanwhile are not opened again by a late execution', async () => {
        const { run, approval, entry } = await withApproval();
        await store.commit(
          change(run)
            .writeApproval({ ...approval, status: 'expired' }, 'requested')
            .seal(),
        );
        expect(await store.fulfilApproval(entry.id, approval, 'task-token')).toBe(false);
        expect((await read(approval))?.status).toBe('expired');
        expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      });
    });
  });
}

function held(index: number, leaseVersion = 0): RunningStep {
  return {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id: `step_${index}`,
    tool: 'github.labels.add',
    leaseVersion,
    attempt: 0,
    updatedAt: AT,
    status: 'running',
    input: { number: 7 },
    receiptKey: 'key',
    lease: { owner: 'lease_1', expiresAt: later(AT, MINUTE_MS) },
    startedAt: AT,
  };
}

function intent({ tenant, runId }: Run, differing: Partial<IntentReceipt> = {}): IntentReceipt {
  return {
    schemaVersion: RECEIPT_SCHEMA_VERSION,
    tenant,
    key: 'key',
    runId,
    stepId: 'label',
    stepIndex: 0,
    tool: 'github.labels.add',
    effect: 'natural',
    target: 'github:octo-org/payments#7',
    fields: ['labels'],
    requestHash: 'hash-of-the-fields',
    attempt: 1,
    leaseVersion: 1,
    intentAt: AT,
    openSince: AT,
    outcome: 'intent',
    ...differing,
  };
}

const succeeded = (receipt: IntentReceipt): Receipt => ({
  ...receipt,
  outcome: 'succeeded',
  settledAt: AT,
  output: { labels: ['triage'] },
  reversal: { irreversible: 'a test' },
  response: { status: 200 },
});

const failed = (receipt: IntentReceipt, outcome: 'failed' | 'unknown'): Receipt => ({
  ...receipt,
  outcome,
  settledAt: AT,
  error: recordedError('TARGET_REFUSED', 'no'),
});

const requested = ({ tenant, runId }: Run): Approval => ({
  schemaVersion: APPROVAL_SCHEMA_VERSION,
  approvalId: 'approval_1',
  tenant,
  runId,
  stepIndex: 0,
  stepId: 'gate',
  status: 'requested',
  requestedAt: AT,
  expiresAt: later(AT, MINUTE_MS),
});

const evidenceRecord = (name: string): EvidenceRecord => ({
  documentKey: `${name}/bundle.json`,
  envelopeKey: `${name}/bundle.dsse.json`,
  sha256: name,
  sizeBytes: 1,
  sealedAt: AT,
});
