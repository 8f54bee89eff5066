import { describe, expect, it } from 'vitest';
import { later } from '../../../lambdas/run/lease.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { RunFilter } from '../../../lambdas/run/run-filter.ts';
import { EXAMINED_MAX } from '../../../lambdas/run/run-store.ts';
import type { CapWrite } from '../../../lambdas/run/settings/caps.ts';
import { STORY_BEGINS_AT as AT } from '../../fakes/fake-clock.ts';
import { accepted } from '../../fakes/story.ts';
import { BY, intent, MINUTE_MS, type RunStoreBench } from './run-store-bench.ts';

/** Slots and lists. */
export function describeCapsAndLists(bench: RunStoreBench): void {
  const { newTenant, newRunId, begin, loaded, change, cancel } = bench;

  describe('caps', () => {
    const slot = { shard: 0, workspace: 'default' };
    const take = (run: Run, max: number, place = slot) =>
      bench.store.commit(change(run).cap({ kind: 'take_slot', slot: place, max }).seal());
    const running = async (tenant: string, shards = 1) => (await bench.store.waitingLine(tenant, 10, shards)).running;

    it('give out as many slots as there are; a commit without a slot writes nothing', async () => {
      const tenant = newTenant();
      const runs = [await begin({ tenant }), await begin({ tenant }), await begin({ tenant })];
      const taken = await Promise.all(runs.map((run) => take(run, 2)));
      expect(taken.map(({ outcome }) => outcome).sort()).toEqual(['committed', 'committed', 'no_slot']);
      expect(await running(tenant)).toEqual({ default: 2 });
      const refused = runs[taken.findIndex(({ outcome }) => outcome === 'no_slot')];
      if (refused) expect((await loaded(refused)).run.seq).toBe(1);
    });

    it('give out a returned slot again', async () => {
      const tenant = newTenant();
      const [first, second] = [await begin({ tenant }), await begin({ tenant })];
      const taken = change(first).cap({ kind: 'take_slot', slot, max: 1 }).seal();
      await bench.store.commit(taken);
      expect(await take(second, 1)).toMatchObject({ outcome: 'no_slot' });
      const returned = change(taken.run).cap({ kind: 'return_slot', slot }).seal();
      expect(await bench.store.commit(returned)).toEqual({ outcome: 'committed' });
      expect(await take(second, 1)).toEqual({ outcome: 'committed' });
      expect(await running(tenant)).toEqual({ default: 1 });
    });

    it('take one slot if the same commit is sent twice', async () => {
      const run = await begin();
      const made = change(run).cap({ kind: 'take_slot', slot, max: 5 }).seal();
      await bench.store.commit(made);
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      expect(await running(run.tenant)).toEqual({ default: 1 });
    });

    it('count each shard and workspace separately', async () => {
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
        bench.store.commit(
          change(await begin({ tenant }))
            .cap({ kind: 'count_start', minute, max: 2 })
            .seal(),
        );
      const minute = AT.slice(0, 16);
      expect([await start(minute), await start(minute), await start(minute)]).toMatchObject([
        { outcome: 'committed' },
        { outcome: 'committed' },
        { outcome: 'no_slot' },
      ]);
      expect(await start('2026-01-02T03:05')).toEqual({ outcome: 'committed' });
    });

    it('refuse a run that is about to be created; what was created before is found, and counts once', async () => {
      const tenant = newTenant();
      const cap: CapWrite & { kind: 'count_start' } = {
        ...{ kind: 'count_start', minute: AT.slice(0, 16), max: 1, workflow: 'caller:ana' },
      };
      const [first, second] = [newRunId(), newRunId()].map((runId) => accepted({ tenant, runId }));
      if (!first || !second) throw new Error('two runs');
      const create = ({ ingest }: typeof first, of = cap) => bench.store.ingest({ ...ingest, cap: of });
      expect(await create(first)).toEqual({ outcome: 'created' });
      expect(await create(second)).toEqual({ outcome: 'no_slot' });
      expect(await bench.store.load(tenant, second.run.runId)).toBeUndefined();
      expect(await create(first)).toEqual({ outcome: 'created' });
      expect(await create(second, { ...cap, max: 2 })).toEqual({ outcome: 'created' });
      const other = accepted({ tenant, runId: newRunId() });
      expect(await create(other, { ...cap, workflow: 'caller:ben' })).toEqual({ outcome: 'created' });
    });

    it('count each workflow separately, in addition to the tenant, and name the cap that refused', async () => {
      const tenant = newTenant();
      const both = (workflow: string) => [
        { kind: 'take_slot', slot, max: 2 } as const,
        { kind: 'take_slot', slot: { ...slot, workflow }, max: 1 } as const,
      ];
      const takeBoth = async (workflow: string) => {
        const [ofTenant, ofWorkflow] = both(workflow);
        const draft = change(await begin({ tenant }));
        return bench.store.commit(
          draft
            .cap(ofTenant as never)
            .cap(ofWorkflow as never)
            .seal(),
        );
      };
      expect(await takeBoth('triage')).toEqual({ outcome: 'committed' });
      expect(await takeBoth('triage')).toEqual({ outcome: 'no_slot', refused: [both('triage')[1]] });
      expect(await takeBoth('other')).toEqual({ outcome: 'committed' });
      expect(await takeBoth('third')).toEqual({ outcome: 'no_slot', refused: [both('third')[0]] });
      expect(await running(tenant)).toEqual({ default: 2 });
    });

    it('give a concurrency key to one run until it is released', async () => {
      const tenant = newTenant();
      const [first, second] = [await begin({ tenant }), await begin({ tenant })];
      const take_key = (run: Run) => change(run).cap({ kind: 'take_key', key: 'k', runId: run.runId }).seal();
      const taken = take_key(first);
      expect(await bench.store.commit(taken)).toEqual({ outcome: 'committed' });
      expect(await bench.store.commit(take_key(second))).toMatchObject({ outcome: 'no_slot' });
      const stolen = change(second).cap({ kind: 'release_key', key: 'k', runId: second.runId }).seal();
      expect(await bench.store.commit(stolen)).toMatchObject({ outcome: 'no_slot' });
      const released = change(taken.run).cap({ kind: 'release_key', key: 'k', runId: first.runId }).seal();
      expect(await bench.store.commit(released)).toEqual({ outcome: 'committed' });
      expect(await bench.store.commit(take_key(second))).toEqual({ outcome: 'committed' });
    });

    it('are checked after a lost race and after a held receipt', async () => {
      const tenant = newTenant();
      const [other, run] = [await begin({ tenant }), await begin({ tenant })];
      await bench.store.commit(
        change(other).writeReceipt(intent(other), 'free').cap({ kind: 'take_slot', slot, max: 1 }).seal(),
      );
      const full = { kind: 'take_slot', slot, max: 1 } as const;
      const both = change(run).writeReceipt(intent(run), 'free').cap(full).seal();
      expect(await bench.store.commit(both)).toMatchObject({ outcome: 'receipt_held' });
      await bench.store.commit(change(run).seal());
      expect(await bench.store.commit(change(run, later(AT, 1)).cap(full).seal())).toEqual({ outcome: 'lost' });
    });

    it('list the waiting runs, longest first, without started ones', async () => {
      const tenant = newTenant();
      const runs = [2, 0, 1].map((minutes) => ({
        tenant,
        at: later(AT, minutes * MINUTE_MS),
        workspace: `w${minutes}`,
      }));
      const [newest, oldest, middle] = [await begin(runs[0]), await begin(runs[1]), await begin(runs[2])];
      const waiting = async (limit: number) => {
        const line = await bench.store.waitingLine(tenant, limit, 1);
        return line.waiting.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
      };
      const shown = ({ runId, workspace, createdAt }: Run) => ({ runId, workspace, createdAt });
      expect(await waiting(10)).toEqual([oldest, middle, newest].map(shown));
      expect(await waiting(2)).toEqual([oldest, middle].map(shown));
      await bench.store.commit(cancel(oldest));
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

    async function walk(tenant: string, query: RunFilter & { limit: number }): Promise<string[]> {
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await bench.store.listRuns(tenant, { ...query, after });
        expect(page.items.length).toBeLessThanOrEqual(query.limit);
        seen.push(...page.items.map(({ runId }) => runId));
        after = page.next;
      } while (after !== undefined);
      return seen;
    }

    it('shows the newest first', async () => {
      const { tenant, ids } = await begun(3);
      const { items, next } = await bench.store.listRuns(tenant, { limit: 10 });
      expect(items.map(({ runId }) => runId)).toEqual(ids.toReversed());
      expect(next).toBeUndefined();
    });

    it.each([1, 2, 5, 6])('gives every run once in pages of %i', async (limit) => {
      const { tenant, ids } = await begun(5);
      expect(await walk(tenant, { limit })).toEqual(ids.toReversed());
    });

    it('gives every run once if all were created at the same time', async () => {
      const tenant = newTenant();
      const ids = Array.from({ length: 5 }, newRunId);
      for (const runId of ids) await begin({ tenant, runId });
      expect((await walk(tenant, { limit: 2 })).sort()).toEqual(ids);
    });

    it('by status shows only runs that have the status now', async () => {
      const { tenant, ids } = await begun(4);
      for (const runId of ids.slice(0, 3)) {
        const found = await bench.store.load(tenant, runId);
        if (found) await bench.store.commit(cancel(found.run));
      }
      expect(await walk(tenant, { status: 'canceled', limit: 2 })).toEqual(ids.slice(0, 3).toReversed());
      expect(await walk(tenant, { status: 'queued', limit: 2 })).toEqual(ids.slice(3));
      expect(await walk(tenant, { status: 'running', limit: 2 })).toEqual([]);
    });

    it('finds runs by each field, and by any of them together', async () => {
      const tenant = newTenant();
      const [old, failed, unsure, overdue, other] = [
        await begin({ tenant, at: AT, automation: 'triage', subject: 'servicenow:acme:INC1', title: 'Disk full' }),
        await begin({ tenant, at: later(AT, 1 * MINUTE_MS), workflow: 'label-all', subject: 'servicenow:acme:INC2' }),
        await begin({ tenant, at: later(AT, 2 * MINUTE_MS), automation: 'triage', title: 'The DISK is slow' }),
        await begin({ tenant, at: later(AT, 3 * MINUTE_MS), subject: `github:${'long-name/'.repeat(60)}#1` }),
        await begin({ tenant, at: later(AT, 4 * MINUTE_MS), subject: 'servicenow:globex:INC1' }),
      ];
      await begin({ automation: 'triage', subject: 'servicenow:acme:INC1' });
      const at = later(AT, 9 * MINUTE_MS);
      const error = { code: 'TARGET_REFUSED', message: 'no' } as const;
      const started = (run: Run, when: string) =>
        change(run, when).move('enriching', BY).move('ready', BY).move('running', BY);
      for (const made of [
        change(failed, at).move('failed_terminal', BY, error).seal(),
        started(unsure, at)
          .move('needs_human', BY, { ...error, code: 'OUTCOME_UNKNOWN' })
          .seal(),
        change(overdue, at).note({ approvalOverdueSince: at, assignee: 'oscar' }).seal(),
      ]) {
        expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      }
      const found = (filter: RunFilter) => walk(tenant, { ...filter, limit: 2 });
      const ids = (...runs: Run[]) => runs.map(({ runId }) => runId);
      expect(await found({ automation: 'triage' })).toEqual(ids(unsure, old));
      expect(await found({ workflow: 'label-all' })).toEqual(ids(failed));
      expect(await found({ subject: 'INC1' })).toEqual(ids(other, old));
      expect(await found({ subject: 'servicenow:acme:INC1' })).toEqual(ids(old));
      expect(await found({ subject: overdue.subject })).toEqual(ids(overdue));
      expect(await found({ errorCode: 'TARGET_REFUSED' })).toEqual(ids(failed));
      expect(await found({ errorCode: 'OUTCOME_UNKNOWN' })).toEqual(ids(unsure));
      expect(await found({ overdue: true })).toEqual(ids(overdue));
      expect(await found({ assignee: 'oscar' })).toEqual(ids(overdue));
      expect(await found({ assignee: 'ana' })).toEqual([]);
      expect(await found({ needsResolution: true })).toEqual(ids(unsure));
      expect(await found({ text: 'disk' })).toEqual(ids(unsure, old));
      expect(await found({ text: 'disk', status: 'queued' })).toEqual(ids(old));
      expect(await found({ since: failed.createdAt, until: overdue.createdAt })).toEqual(ids(overdue, unsure, failed));
      expect(await found({ automation: 'triage', since: failed.createdAt })).toEqual(ids(unsure));
      expect(await found({ automation: 'triage', errorCode: 'TARGET_REFUSED' })).toEqual([]);
      expect(await found({ subject: 'INC1', status: 'queued', until: AT })).toEqual(ids(old));
      expect(await found({ automation: 'nothing' })).toEqual([]);
      const ended = { ...(await loaded(overdue)).run };
      await bench.store.commit(change(ended, later(at, 1)).note({ approvalOverdueSince: undefined }).seal());
      expect(await found({ overdue: true })).toEqual([]);
    });

    it('leaves out what does not match, says how far it has searched, and continues from there', async () => {
      const tenant = newTenant();
      const [first] = await Promise.all(
        Array.from({ length: EXAMINED_MAX + 20 }, (_, index) => begin({ tenant, at: later(AT, index) })),
      );
      await bench.store.commit(cancel(first as Run));
      const filter = { workflow: 'label-new-issue', status: 'canceled', limit: 5 } as const;
      const page = await bench.store.listRuns(tenant, filter);
      expect(page).toMatchObject({ items: [], searchedBackTo: later(AT, 20) });
      const rest = await bench.store.listRuns(tenant, { ...filter, after: page.next });
      expect(rest.items.map(({ runId }) => runId)).toEqual([first?.runId]);
      expect(rest.next).toBeUndefined();
    });

    it('searches many titles with one page, and gives each match once in pages', async () => {
      const tenant = newTenant();
      const titles = ['The needle ~ a', 'İ'.repeat(300), 'Ⱥ'.repeat(300), 'שלום עולם', 'two\nlines'];
      const some = await Promise.all(titles.map((title, index) => begin({ tenant, at: later(AT, index), title })));
      const hay = await Promise.all(
        Array.from({ length: EXAMINED_MAX + 20 }, (_, index) =>
          // Three runs at a time: the time alone does not say where a page ends.
          begin({ tenant, at: later(AT, 10 + Math.floor(index / 3)), title: `Hay  ${index} of 120` }),
        ),
      );
      for (const [index, text] of ['NEEDLE ~', 'i̇i̇', 'ⱥⱥ', 'ם ע', 'O\nL'].entries()) {
        const page = await bench.store.listRuns(tenant, { text, limit: 5 });
        expect(page.items.map(({ runId }) => runId)).toEqual([some[index]?.runId]);
        expect(page.next).toBeUndefined();
      }
      const newest = await bench.store.listRuns(tenant, { text: 'hay  1', limit: 5 });
      expect(newest).toMatchObject({ searchedBackTo: newest.items.at(-1)?.createdAt });
      expect((await walk(tenant, { text: 'hay ', limit: 7 })).sort()).toEqual(hay.map(({ runId }) => runId).sort());
      const between = { since: later(AT, 10), until: later(AT, 11) };
      expect(await walk(tenant, { text: 'hay', ...between, limit: 4 })).toHaveLength(6);
      expect(
        await walk(tenant, { text: 'hay', status: 'queued', automation: 'label-new-issue', limit: 50 }),
      ).toHaveLength(120);
      expect(await walk(tenant, { text: 'hay', status: 'canceled', limit: 50 })).toEqual([]);
    });

    it('finds a run by its title and by its error if one commit gave it both', async () => {
      const tenant = newTenant();
      const begun = [await begin({ tenant }), await begin({ tenant, at: later(AT, 1) })];
      const error = { code: 'MISSING_VALUE', message: 'no' } as const;
      for (const run of begun) {
        const ended = change(run, run.createdAt).note({ enrichment: { title: 'Ends at once', links: [] } });
        await bench.store.commit(ended.move('failed_terminal', BY, error).seal());
      }
      const ids = begun.map(({ runId }) => runId).toReversed();
      for (const filter of [{ text: 'at once' }, { errorCode: 'MISSING_VALUE' }] as const) {
        expect(await walk(tenant, { ...filter, limit: 1 })).toEqual(ids);
        expect(await walk(tenant, { ...filter, since: AT, until: AT, limit: 1 })).toEqual([begun[0]?.runId]);
      }
      const [counted] = await bench.store.countRuns(tenant, [{ errorCode: 'MISSING_VALUE' }], 9);
      expect(counted).toEqual({ count: 2, oldest: { runId: begun[0]?.runId, createdAt: AT } });
    });

    it('counts the runs of a list up to a limit, in a time, and names the oldest', async () => {
      const { tenant, ids } = await begun(4);
      const newest = await bench.store.load(tenant, ids[3] ?? '');
      if (newest) await bench.store.commit(cancel(newest.run));
      const counted = (max: number, times: { since?: string; until?: string } = {}) =>
        bench.store.countRuns(
          tenant,
          [{ status: 'queued' }, { status: 'canceled' }, { overdue: true }].map(
            (filter) => ({ ...filter, ...times }) as RunFilter,
          ),
          max,
        );
      const at = (index: number) => ({ runId: ids[index], createdAt: later(AT, index * MINUTE_MS) });
      expect(await counted(3)).toEqual([{ count: 3, oldest: at(0) }, { count: 1, oldest: at(3) }, { count: 0 }]);
      expect((await counted(2))[0]).toEqual({ count: 2, atLeast: true, oldest: at(0) });
      const since = later(AT, MINUTE_MS);
      expect((await counted(5, { since, until: since }))[0]).toEqual({ count: 1, oldest: at(1) });
      const some = await bench.store.someRuns(tenant, [ids[1] ?? '', ids[1] ?? '', 'run_0']);
      expect(some.map(({ runId }) => runId)).toEqual([ids[1]]);
    });

    it('keeps what the last sweep found, for each tenant', async () => {
      const tenant = newTenant();
      expect(await bench.store.lastSweep(tenant)).toBeUndefined();
      await bench.store.recordSweep(tenant, { at: AT, due: 3, oldestDueAt: AT });
      await bench.store.recordSweep(tenant, { at: later(AT, 1), due: 0 });
      await bench.store.recordSweep(newTenant(), { at: AT, due: 1 });
      expect(await bench.store.lastSweep(tenant)).toEqual({ at: later(AT, 1), due: 0 });
    });

    it('finds runs by the first characters of their id', async () => {
      const tenant = newTenant();
      for (const runId of ['run_ab12', 'run_ab34', 'run_ac00']) await begin({ tenant, runId });
      await begin({ runId: 'run_ab99' });
      const found = (prefix: string, limit = 9) => bench.store.runIdsStartingWith(tenant, prefix, limit);
      expect(await found('run_ab')).toEqual(['run_ab12', 'run_ab34']);
      expect(await found('run_a', 2)).toEqual(['run_ab12', 'run_ab34']);
      expect(await found('run_ac00')).toEqual(['run_ac00']);
      expect(await found('run_b')).toEqual([]);
    });

    it('shows a tenant nothing of another', async () => {
      const { ids } = await begun(1);
      const stranger = await begin();
      expect(await walk(stranger.tenant, { limit: 10 })).toEqual([stranger.runId]);
      expect(await bench.store.load(stranger.tenant, ids[0] ?? '')).toBeUndefined();
    });

    it('gives commits after a number, oldest first, up to a limit', async () => {
      let run = await begin();
      for (let at = 1; at <= 11; at += 1) {
        const made = change(run, later(AT, at)).seal();
        await bench.store.commit(made);
        run = made.run;
      }
      const seqs = async (after: number, limit: number) =>
        (await bench.store.listCommits(run.tenant, run.runId, { after, limit })).map(({ seq }) => seq);
      expect(await seqs(0, 3)).toEqual([1, 2, 3]);
      expect(await seqs(8, 10)).toEqual([9, 10, 11, 12]);
      expect(await seqs(12, 10)).toEqual([]);
    });
  });

  it('separates the same run id of two tenants', async () => {
    const runId = newRunId();
    const [mine, theirs] = [await begin({ runId, key: 'github:same' }), await begin({ runId, key: 'github:same' })];
    await bench.store.commit(cancel(mine));
    expect((await loaded(mine)).run.status).toBe('canceled');
    expect((await loaded(theirs)).run).toEqual(theirs);
    expect(await bench.store.listCommits(theirs.tenant, runId, { after: 0, limit: 10 })).toHaveLength(1);
  });
}
