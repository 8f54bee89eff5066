import { describe, expect, it } from 'vitest';
import { newOutboxEntry, type OutboxEntry, type StartApproval } from '../../../lambdas/outbox/outbox.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import { later } from '../../../lambdas/run/lease.ts';
import type { Run, TerminalRun } from '../../../lambdas/run/run.ts';
import { DUE_SHARDS, type DueRun, dueTimeStep } from '../../../lambdas/run/run-store.ts';
import { shardOf } from '../../../lambdas/run/settings/caps.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { BY, besides, CLOCKS, evidenceRecord, MINUTE_MS, type RunStoreBench, requested } from './run-store-bench.ts';

/** A multiple of the step of due times, so that every store lists a run exactly then. */
const AT = dueTimeStep(STORY_BEGINS_AT);
const TOKEN = { taskToken: 'task-token', waitNumber: 0 };

/** Due rows, outbox entries and approvals. */
export function describeOutboxAndApprovals(bench: RunStoreBench): void {
  const { newTenant, newRunId, begin, change, cancel, loaded, dueRuns, dueEntries } = bench;

  describe('what is due', () => {
    it('is a run whose due time has passed, in the shard of its id only', async () => {
      const run = await begin({ dueAt: later(AT, MINUTE_MS) });
      expect(await dueRuns(later(AT, MINUTE_MS - 1), run.tenant)).toEqual([]);
      expect(await dueRuns(later(AT, MINUTE_MS), run.tenant)).toEqual([run.runId]);
    });

    it('is spread over the shards', async () => {
      const tenant = newTenant();
      for (let index = 0; index < 160; index += 1) await begin({ tenant, runId: newRunId() });
      for (let shard = 0; shard < DUE_SHARDS; shard += 1) {
        const { items } = await bench.store.due(shard, later(AT, MINUTE_MS), { limit: 1_000 });
        expect(items.length, `of shard ${shard}`).toBeGreaterThan(0);
      }
    });

    it('is listed in pages, the longest due first, each once', async () => {
      // Before everything else of this contract, so that in its shard these are the longest due.
      const runId = newRunId();
      const long = (hours: number) => later('2001-01-01T00:00:00.000Z', hours * 60 * MINUTE_MS);
      const [third, first, second] = [
        await begin({ runId, dueAt: long(3) }),
        await begin({ runId, dueAt: long(1) }),
        await begin({ runId, dueAt: long(2) }),
      ];
      const shard = shardOf(runId, DUE_SHARDS);
      const { items, next } = await bench.store.due(shard, long(4), { limit: 2 });
      expect(items).toEqual([
        { kind: 'run', tenant: first.tenant, runId, dueAt: long(1), sweeps: 0 },
        { kind: 'run', tenant: second.tenant, runId, dueAt: long(2), sweeps: 0 },
      ]);
      expect(next).toBeDefined();
      const rest = await bench.store.due(shard, long(4), { limit: 2, after: next });
      expect(rest.items.map(({ tenant }) => tenant)).toEqual([third.tenant]);
      expect(rest.next).toBeUndefined();
      for (const run of [first, second, third]) await bench.store.commit(cancel(run));
    });

    it('is postponed once by the sweeper that sent it, and counts the sweeps', async () => {
      const run = await begin();
      const due = async (now: string) => (await bench.dueItems(now)).filter(({ tenant }) => tenant === run.tenant);
      const [found] = await due(later(AT, MINUTE_MS));
      if (found?.kind !== 'run') throw new Error('the run is not due');
      const next = later(AT, 2 * MINUTE_MS);
      const both = [bench.store.postponeRun(found, next), bench.store.postponeRun(found, next)];
      expect((await Promise.all(both)).sort()).toEqual([false, true]);
      expect(await due(later(AT, 2 * MINUTE_MS - 1))).toEqual([]);
      const [again] = await due(later(next, 1));
      expect(again).toEqual({ ...found, dueAt: next, sweeps: 1 });
      expect(await bench.store.postponeRun(again as DueRun, later(AT, 3 * MINUTE_MS))).toBe(true);
      expect(await due(later(AT, 3 * MINUTE_MS + 1))).toMatchObject([{ sweeps: 2 }]);
    });

    it('a commit sets a new due time and resets the sweeps; a sweeper that read it before postpones nothing', async () => {
      const run = await begin();
      const due = async () => (await bench.dueItems(later(AT, 9 * MINUTE_MS))).filter((d) => d.tenant === run.tenant);
      const [found] = await due();
      const next = later(AT, 5 * MINUTE_MS);
      expect(await bench.store.postponeRun(found as DueRun, later(AT, 4 * MINUTE_MS))).toBe(true);
      const moved = change(run).note({ dueAt: next }).seal();
      expect(await bench.store.commit(moved)).toEqual({ outcome: 'committed' });
      expect(await bench.store.postponeRun(found as DueRun, later(AT, 6 * MINUTE_MS))).toBe(false);
      expect(await due()).toEqual([{ ...found, dueAt: next, sweeps: 0 }]);
      await bench.store.commit(cancel(moved.run));
      const [last] = [{ ...(found as DueRun), dueAt: next }];
      expect(await bench.store.postponeRun(last, later(AT, 6 * MINUTE_MS))).toBe(false);
      expect(await due()).toEqual([]);
    });

    it('is not a run without a due time, such as a paused one', async () => {
      const run = await begin();
      await bench.store.commit(change(run).note({ dueAt: undefined }).seal());
      expect(await dueRuns('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
    });

    it('follows the run: a changed due time counts, a terminal run is never due', async () => {
      const run = await begin();
      const later1 = change(run)
        .note({ dueAt: later(AT, 10 * MINUTE_MS) })
        .seal();
      await bench.store.commit(later1);
      expect(await dueRuns(later(AT, 9 * MINUTE_MS), run.tenant)).toEqual([]);
      expect(await dueRuns(later(AT, 10 * MINUTE_MS), run.tenant)).toEqual([run.runId]);
      await bench.store.commit(cancel(later1.run));
      expect(await dueRuns('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
    });
  });

  describe('an ended run that is not sealed', () => {
    const dueAt = later(AT, MINUTE_MS);
    async function ended(): Promise<TerminalRun> {
      const run = await begin();
      const end = change(run).move('canceled', BY).requireSeal(dueAt).seal();
      expect(await bench.store.commit(end)).toEqual({ outcome: 'committed' });
      return end.run as TerminalRun;
    }

    it('is due, until it is stored that it is sealed', async () => {
      const run = await ended();
      expect(await dueRuns(later(dueAt, -1), run.tenant)).toEqual([]);
      expect(await dueRuns(dueAt, run.tenant)).toEqual([run.runId]);
      await bench.store.completeSeal(undefined, run.tenant, run.runId, evidenceRecord('first'), besides);
      expect(await bench.store.clearSealDue(run)).toBe(true);
      expect(await dueRuns('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      const { sealDueAt: _due, ...sealed } = run;
      expect((await loaded(run)).run).toEqual(sealed);
    });

    it('has an outbox entry instead, if the entry is stored with that', async () => {
      const run = await ended();
      const entry = newOutboxEntry({ kind: 'seal_evidence', tenant: run.tenant, runId: run.runId }, AT);
      expect(await bench.store.clearSealDue(run, entry)).toBe(true);
      expect(await dueRuns('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([entry]);
    });

    it('stays due with a later commit, which makes an earlier read worthless', async () => {
      const run = await ended();
      const assigned = change(run, later(AT, 1)).note({ assignee: 'ana' }).seal();
      expect(await bench.store.commit(assigned)).toEqual({ outcome: 'committed' });
      const entry = newOutboxEntry({ kind: 'seal_evidence', tenant: run.tenant, runId: run.runId }, AT);
      expect([await bench.store.clearSealDue(run), await bench.store.clearSealDue(run, entry)]).toEqual([false, false]);
      expect(await dueRuns(dueAt, run.tenant)).toEqual([run.runId]);
      expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      expect(await bench.store.clearSealDue(assigned.run as TerminalRun)).toBe(true);
    });
  });

  describe('outbox entries', () => {
    async function withEntry(): Promise<{ run: Run; entry: OutboxEntry }> {
      const run = await begin();
      const entry = newOutboxEntry({ kind: 'seal_evidence', tenant: run.tenant, runId: run.runId }, AT);
      const end = change(run).move('canceled', BY).enqueue(entry).seal();
      await bench.store.commit(end);
      return { run: end.run, entry };
    }
    const soon = later(AT, 30_000);

    it('become due with the commit that made them', async () => {
      const { run, entry } = await withEntry();
      expect(await dueEntries(later(AT, 29_999), run.tenant)).toEqual([]);
      expect(await dueEntries(soon, run.tenant)).toEqual([entry]);
    });

    it('have their attempt counted by one of two sweepers', async () => {
      const { run, entry } = await withEntry();
      const next = later(soon, MINUTE_MS);
      const both = await Promise.all([bench.store.bumpOutbox(entry, next), bench.store.bumpOutbox(entry, next)]);
      expect(both.sort()).toEqual([false, true]);
      expect(await dueEntries(soon, run.tenant)).toEqual([]);
      expect(await dueEntries(next, run.tenant)).toEqual([{ ...entry, attempts: 1, dueAt: next }]);
    });

    it('that failed for good stay stored and are not due until they are redriven', async () => {
      const { run, entry } = await withEntry();
      const failed = { at: soon, reason: 'unknown kind' };
      const both = [bench.store.failOutbox(entry, failed), bench.store.failOutbox(entry, failed)];
      expect((await Promise.all(both)).sort()).toEqual([false, true]);
      expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
      const [stuck] = await bench.store.stuckOutbox(run.tenant, 10);
      expect(stuck).toEqual({ ...entry, attempts: 1, failed });
      expect(await bench.store.stuckOutbox(newTenant(), 10)).toEqual([]);
      expect(await bench.store.redriveOutbox(entry, soon)).toBe(false);
      expect(await bench.store.redriveOutbox(stuck as OutboxEntry, soon)).toBe(true);
      expect(await dueEntries(soon, run.tenant)).toEqual([{ ...entry, dueAt: soon }]);
      expect(await bench.store.stuckOutbox(run.tenant, 10)).toEqual([]);
    });

    it('are stuck when they were sent too often, and are found in every shard, up to a limit', async () => {
      const tenant = newTenant();
      const ids: string[] = [];
      for (let index = 0; index < 12; index += 1) {
        const run = await begin({ tenant, runId: newRunId() });
        const entry = {
          ...newOutboxEntry({ kind: 'seal_evidence', tenant, runId: run.runId }, AT),
          attempts: index % 2 ? 5 : 4,
        };
        await bench.store.commit(change(run).move('canceled', BY).enqueue(entry).seal());
        if (entry.attempts === 5) ids.push(entry.id);
      }
      expect((await bench.store.stuckOutbox(tenant, 10)).map(({ id }) => id).sort()).toEqual(ids.sort());
      expect(await bench.store.stuckOutbox(tenant, 4)).toHaveLength(4);
    });

    it('without a count, which another program wrote, can be failed and redriven too', async () => {
      const { run, entry } = await withEntry();
      const { attempts: _attempts, ...uncounted } = entry;
      await bench.store.commit(
        change(await begin({ tenant: run.tenant }))
          .enqueue(uncounted as OutboxEntry)
          .seal(),
      );
      expect(await bench.store.failOutbox(uncounted as OutboxEntry, { at: soon, reason: 'malformed' })).toBe(true);
      expect(await bench.store.stuckOutbox(run.tenant, 10)).toMatchObject([{ id: entry.id, attempts: 1 }]);
    });

    it('to seal a run are deleted with the evidence record; a second record changes nothing', async () => {
      const { run, entry } = await withEntry();
      const { tenant, runId } = run;
      expect(await bench.store.evidence(tenant, runId)).toBeUndefined();
      await bench.store.completeSeal(entry.id, tenant, runId, evidenceRecord('first'), besides);
      await bench.store.completeSeal(entry.id, tenant, runId, evidenceRecord('second'), besides);
      expect(await bench.store.evidence(tenant, runId)).toEqual(evidenceRecord('first'));
      expect(await dueEntries('2999-01-01T00:00:00.000Z', tenant)).toEqual([]);
      expect(await bench.store.bumpOutbox(entry, soon)).toBe(false);
    });

    it('to seal addenda are deleted with their records, which are listed in order', async () => {
      const { run, entry } = await withEntry();
      const { tenant, runId } = run;
      await bench.store.completeSeal(entry.id, tenant, runId, evidenceRecord('bundle'), besides);
      const seal = (seq: number, name: string) =>
        bench.store.completeSeal(entry.id, tenant, runId, evidenceRecord(name), {
          ...besides,
          logged: { ...besides.logged, addendum: seq },
        });
      await seal(12, 'later');
      await seal(9, 'earlier');
      await seal(9, 'again');
      const list = (after: number, limit = 10) => bench.store.addenda(tenant, runId, { after, limit });
      const [earlier, later] = [
        { seq: 9, ...evidenceRecord('earlier') },
        { seq: 12, ...evidenceRecord('later') },
      ];
      expect(await list(0)).toEqual([earlier, later]);
      expect(await list(0, 1)).toEqual([earlier]);
      expect(await list(9)).toEqual([later]);
      expect(await bench.store.evidence(tenant, runId)).toEqual(evidenceRecord('bundle'));
      expect(await bench.store.addenda(newTenant(), runId, { after: 0, limit: 10 })).toEqual([]);
    });

    it('to export are deleted with the references to the artifacts, which change nothing else of the record', async () => {
      const { run, entry } = await withEntry();
      const { tenant, runId } = run;
      const artifacts = [{ name: 'completion' as const, key: 'artifacts/a', sha256: 'f'.repeat(64), sizeBytes: 9 }];
      await bench.store.completeExport(entry.id, tenant, runId, artifacts);
      expect(await bench.store.evidence(tenant, runId)).toBeUndefined();
      expect(await dueEntries(soon, tenant)).toEqual([]);
      await bench.store.completeSeal(entry.id, tenant, runId, evidenceRecord('first'), besides);
      for (let times = 0; times < 2; times += 1) {
        await bench.store.completeExport(entry.id, tenant, runId, artifacts);
      }
      expect(await bench.store.evidence(tenant, runId)).toEqual({ ...evidenceRecord('first'), artifacts });
    });

    it('are also deleted if the evidence was recorded before', async () => {
      const { run, entry } = await withEntry();
      await bench.store.completeSeal('another-entry', run.tenant, run.runId, evidenceRecord('first'), besides);
      await bench.store.completeSeal(entry.id, run.tenant, run.runId, evidenceRecord('second'), besides);
      expect(await dueEntries(soon, run.tenant)).toEqual([]);
    });
  });

  describe('approvals', () => {
    async function withApproval(): Promise<{ run: Run; approval: Approval; entry: OutboxEntry }> {
      const run = await begin();
      const approval = requested(run);
      const { tenant, runId } = run;
      const entry = newOutboxEntry(
        { kind: 'start_approval', tenant, runId, approvalId: approval.approvalId, clocks: CLOCKS },
        AT,
      );
      const made = change(run).writeApproval(approval, 'new').enqueue(entry).seal();
      expect(await bench.store.commit(made)).toEqual({ outcome: 'committed' });
      return { run: made.run, approval, entry };
    }
    const read = ({ tenant, runId, approvalId }: Approval) => bench.store.approval(tenant, runId, approvalId);

    it('are read by run and id only', async () => {
      const { run, approval } = await withApproval();
      expect(await read(approval)).toEqual(approval);
      expect(await bench.store.approval(run.tenant, run.runId, 'approval_other')).toBeUndefined();
      expect(await bench.store.approval(newTenant(), run.runId, approval.approvalId)).toBeUndefined();
      const asked = [approval.approvalId, 'approval_other', approval.approvalId];
      expect(await bench.store.approvals(run.tenant, asked)).toEqual([await read(approval)]);
      expect(await bench.store.approvals(newTenant(), asked)).toEqual([]);
    });

    it('store the token of their execution where readers do not see it, and complete the outbox entry that starts it', async () => {
      const { run, approval, entry } = await withApproval();
      expect(await bench.store.storeTaskToken(entry.id, approval, { status: 'notified' }, TOKEN)).toBe('stored');
      expect(await read(approval)).toEqual({ ...approval, status: 'notified', revision: 2 });
      expect(JSON.stringify(await wholeRun(bench.store, run.tenant, run.runId))).not.toContain('task-token');
      expect(await bench.store.taskToken(run.tenant, run.runId, approval.approvalId)).toBe('task-token');
      expect(await bench.store.taskToken(newTenant(), run.runId, approval.approvalId)).toBeUndefined();
      expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
    });

    it('store the token of the next escalation stage, and no earlier one after it', async () => {
      const { run, approval, entry } = await withApproval();
      const store = async (waitNumber: number) =>
        bench.store.storeTaskToken(entry.id, (await read(approval)) ?? approval, {}, { ...TOKEN, waitNumber });
      expect([await store(0), await store(7), await store(7), await store(6)]).toEqual([
        ...['stored', 'stored', 'stored'],
        'has_later_token',
      ]);
      expect(await bench.store.storeTaskToken(entry.id, approval, {}, { ...TOKEN, waitNumber: 1 })).toBe('changed');
      expect((await read(approval))?.revision).toBe(4);
      const later = { taskToken: 'later-token', waitNumber: 10_000 };
      const held = (await read(approval)) ?? approval;
      expect(await bench.store.storeTaskToken(entry.id, held, {}, later)).toBe('stored');
      expect(await bench.store.taskToken(run.tenant, run.runId, approval.approvalId)).toBe('later-token');
    });

    it('change without a new token', async () => {
      const { run, approval, entry } = await withApproval();
      await bench.store.storeTaskToken(entry.id, approval, {}, TOKEN);
      const held = (await read(approval)) ?? approval;
      expect(await bench.store.storeTaskToken(entry.id, held, { status: 'notified' })).toBe('stored');
      expect(await read(approval)).toMatchObject({ status: 'notified', revision: 3 });
      expect(await bench.store.taskToken(run.tenant, run.runId, approval.approvalId)).toBe('task-token');
    });

    describe('whose card is posted without an execution', () => {
      /** Somebody has claimed the entry, and posts the card. */
      async function announced() {
        const { run, approval, entry } = await withApproval();
        const announcing = { ...(entry as StartApproval), announce: true as const };
        const noted = change(run).note({ assignee: 'ana' }).enqueue(announcing).seal();
        expect(await bench.store.commit(noted)).toEqual({ outcome: 'committed' });
        expect(await bench.store.bumpOutbox(announcing, announcing.dueAt)).toBe(true);
        const claimed = { ...announcing, attempts: 1 };
        return { run: noted.run, approval, unclaimed: announcing, claimed };
      }
      const remindAt = later(AT, 5 * MINUTE_MS);
      const startOf = ({ announce: _announced, ...entry }: StartApproval): StartApproval => ({
        ...entry,
        dueAt: remindAt,
      });
      const entries = (tenant: string) => dueEntries('2999-01-01T00:00:00.000Z', tenant);
      const card = { channel: 'C1', ts: '1' };

      it('store the card with the entry that starts the execution later', async () => {
        const { approval, claimed } = await announced();
        const changes = { status: 'notified', card } as const;
        expect(await bench.store.storeCard(claimed, approval, changes, startOf(claimed))).toBe('stored');
        expect(await read(approval)).toEqual({ ...approval, ...changes, revision: 2 });
        expect(await dueEntries(later(remindAt, -1), approval.tenant)).toEqual([]);
        expect(await dueEntries(remindAt, approval.tenant)).toEqual([startOf(claimed)]);
        expect(await bench.store.storeCard(claimed, approval, changes, startOf(claimed))).toBe('changed');
      });

      it('store nothing if the sweeper has sent the entry again', async () => {
        const { approval, claimed } = await announced();
        expect(await bench.store.bumpOutbox(claimed, remindAt)).toBe(true);
        expect(await bench.store.storeCard(claimed, approval, { card }, startOf(claimed))).toBe('sent_again');
        await bench.store.completeOutboxEntry(claimed.id);
        expect(await bench.store.storeCard(claimed, approval, { card }, startOf(claimed))).toBe('sent_again');
        expect(await read(approval)).toEqual(approval);
        expect(await entries(approval.tenant)).toEqual([]);
      });

      it('keep the entry while somebody may post the card, and give it up before and after that', async () => {
        const { approval, unclaimed, claimed } = await announced();
        await bench.store.cancelStart(claimed.id);
        expect(await entries(approval.tenant)).toEqual([claimed]);
        await bench.store.storeCard(claimed, approval, { card }, startOf(claimed));
        await bench.store.cancelStart(claimed.id);
        expect(await entries(approval.tenant)).toEqual([]);
        await bench.store.cancelStart(claimed.id);
        expect(await bench.store.bumpOutbox(unclaimed, unclaimed.dueAt)).toBe(false);
      });

      it('give up an entry that nobody has claimed', async () => {
        const { run, approval, entry } = await withApproval();
        const announcing = { ...(entry as StartApproval), announce: true as const };
        await bench.store.commit(change(run).note({ assignee: 'ana' }).enqueue(announcing).seal());
        await bench.store.cancelStart(entry.id);
        expect(await entries(approval.tenant)).toEqual([]);
        expect(await bench.store.bumpOutbox(announcing, announcing.dueAt)).toBe(false);
      });
    });

    it('change only from the revision that the writer has read', async () => {
      const { run, approval, entry } = await withApproval();
      await bench.store.storeTaskToken(entry.id, approval, { status: 'notified' }, TOKEN);
      const expired: Approval = { ...approval, status: 'expired', revision: 3 };
      expect(await bench.store.commit(change(run).writeApproval(expired, 1).seal())).toEqual({ outcome: 'lost' });
      expect(await bench.store.commit(change(run).writeApproval(expired, 2).seal())).toEqual({ outcome: 'committed' });
      expect((await read(approval))?.status).toBe('expired');
    });

    it('that were changed store no token of a reader with the old revision', async () => {
      const { run, approval, entry } = await withApproval();
      await bench.store.commit(
        change(run)
          .writeApproval({ ...approval, status: 'expired', revision: 2 }, 1)
          .seal(),
      );
      expect(await bench.store.storeTaskToken(entry.id, approval, { status: 'notified' }, TOKEN)).toBe('changed');
      expect((await read(approval))?.status).toBe('expired');
      expect(await bench.store.taskToken(run.tenant, run.runId, approval.approvalId)).toBeUndefined();
      await bench.store.completeOutboxEntry(entry.id);
      expect(await dueEntries('2999-01-01T00:00:00.000Z', run.tenant)).toEqual([]);
    });

    it('are listed while they are open, oldest first, page by page, tenant by tenant', async () => {
      const tenant = newTenant();
      const opened: Approval[] = [];
      for (const minute of [3, 1, 2]) {
        const run = await begin({ tenant });
        const approval = requested(run, { requestedAt: later(AT, minute * MINUTE_MS) });
        await bench.store.commit(change(run).writeApproval(approval, 'new').seal());
        opened.push(approval);
      }
      const closedRun = await begin({ tenant });
      await bench.store.commit(
        change(closedRun)
          .writeApproval(requested(closedRun, { status: 'approved' }), 'new')
          .seal(),
      );
      const first = await bench.store.pendingApprovals(tenant, { limit: 2 });
      const second = await bench.store.pendingApprovals(tenant, { limit: 2, after: first.next });
      const times = [...first.items, ...second.items].map(({ requestedAt }) => requestedAt);
      expect(times).toEqual(opened.map(({ requestedAt }) => requestedAt).sort());
      expect(first.items).toHaveLength(2);
      expect((await bench.store.pendingApprovals(newTenant(), { limit: 2 })).items).toEqual([]);
      expect(await bench.store.countPendingApprovals(tenant)).toBe(opened.length);
      expect(await bench.store.countPendingApprovals(newTenant())).toBe(0);
    });

    it('are listed after they are closed, the last closed first, page by page, tenant by tenant', async () => {
      const tenant = newTenant();
      const close = async (status: Approval['status'], minute: number) => {
        const run = await begin({ tenant });
        const approval = requested(run, { status, decidedAt: later(AT, minute * MINUTE_MS) });
        await bench.store.commit(change(run).writeApproval(approval, 'new').seal());
        return approval.approvalId;
      };
      const [first, last, middle] = [
        await close('approved', 1),
        await close('rejected', 3),
        await close('approved', 2),
      ];
      const expired = await close('expired', 4);
      const canceled = await close('canceled', 5);
      const list = async (query: Parameters<typeof bench.store.closedApprovals>[1]) => {
        const { items, next } = await bench.store.closedApprovals(tenant, query);
        return { ids: items.map(({ approvalId }) => approvalId), next };
      };
      const page = await list({ list: 'decided', limit: 2 });
      expect(page.ids).toEqual([last, middle]);
      expect((await list({ list: 'decided', limit: 2, after: page.next })).ids).toEqual([first]);
      expect((await list({ list: 'expired', limit: 2 })).ids).toEqual([expired]);
      expect((await list({ list: 'canceled', limit: 2 })).ids).toEqual([canceled]);
      expect((await bench.store.pendingApprovals(tenant, { limit: 5 })).items).toEqual([]);
      expect((await bench.store.closedApprovals(newTenant(), { list: 'decided', limit: 2 })).items).toEqual([]);
    });
  });
}
