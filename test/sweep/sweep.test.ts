import { beforeEach, describe, expect, it } from 'vitest';
import { LOGGED } from '../../lambdas/entry/environment.ts';
import { newOutboxEntry, type OutboxEntry, resendDelayMs } from '../../lambdas/outbox/outbox.ts';
import { later } from '../../lambdas/run/lease.ts';
import type { RunStore } from '../../lambdas/run/run-store.ts';
import { runResendDelayMs, type Sweeper, sweep } from '../../lambdas/sweep/sweep.ts';
import { ChangeDraft } from '../contracts/run-store/change-draft.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { MemoryOutbox } from '../fakes/memory/memory-outbox.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { MemoryStepQueue } from '../fakes/memory/memory-step-queue.ts';
import { type Passage, undisturbed } from '../fakes/passage.ts';
import { accepted } from '../fakes/story.ts';

const BY = { initiator: 'system', actor: 'test' } as const;

let passage: Passage;
let clock: FakeClock;
let log: MemoryLog;
let runs: MemoryRunStore;
let queue: MemoryStepQueue;
let outbox: MemoryOutbox;
let definitions: MemoryDefinitions;
beforeEach(() => {
  passage = undisturbed;
  clock = new FakeClock();
  log = new MemoryLog();
  runs = new MemoryRunStore();
  definitions = new MemoryDefinitions();
  queue = new MemoryStepQueue(clock, (name, run) => passage(name, run));
  outbox = new MemoryOutbox((name, run) => passage(name, run));
});

const swept = (differing: Partial<Sweeper['runs']> = {}, time: Partial<Sweeper> = {}) =>
  sweep({
    runs: {
      due: runs.due.bind(runs),
      outboxEntries: runs.outboxEntries.bind(runs),
      postponeRun: runs.postponeRun.bind(runs),
      bumpOutbox: runs.bumpOutbox.bind(runs),
      failOutbox: runs.failOutbox.bind(runs),
      lastSweep: runs.lastSweep.bind(runs),
      ...differing,
    },
    queue,
    outbox,
    tenants: ['acme'],
    definitions,
    fireSchedule: async () => {},
    clock,
    log,
    hasTimeToRead: () => true,
    hasTimeToSend: () => true,
    ...time,
  });
/** The numbers of sent and remaining items, without due times and tenants. */
const counts = async (...args: Parameters<typeof swept>) => {
  const { oldestDueAt: _whenever, tenants: _ofAll, ...counted } = await swept(...args);
  return counted;
};
const NOTHING = { runs: 0, outboxEntries: 0, schedules: 0, left: 0 };

async function queued(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `run_${index.toString(16).padStart(8, '0')}`);
  for (const runId of ids) await runs.ingest(accepted({ runId }).ingest);
  return ids;
}

/** A run that has ended, with an outbox entry for its evidence, which is not sealed yet. */
async function withOutboxEntry(runId = 'run_00000001') {
  const { run, ingest } = accepted({ runId });
  await runs.ingest(ingest);
  const entry = newOutboxEntry({ kind: 'seal_evidence', tenant: 'acme', runId }, STORY_BEGINS_AT);
  await runs.commit(new ChangeDraft(run, STORY_BEGINS_AT).move('canceled', BY).enqueue(entry).seal());
  return entry;
}

describe('the sweeper', () => {
  it('returns the due time of the item that has been due longest, and none if nothing is due', async () => {
    expect(await swept()).toEqual({ ...NOTHING, tenants: { acme: { due: 0 } } });
    await queued(1);
    clock.advance(600_000);
    await runs.ingest(accepted({ tenant: 'globex', runId: 'run_0000000f' }).ingest);
    clock.advance(60_000);
    expect((await swept()).oldestDueAt).toBe('2026-01-02T03:04:35.000Z');
  });

  it('sends a run that does not change at growing intervals, up to ten minutes', async () => {
    await queued(1);
    clock.advance(30_000);
    const minutes: number[] = [];
    for (let minute = 0; minute <= 50; minute += 1) {
      await swept();
      if (queue.receive().length > 0) minutes.push(minute);
      clock.advance(60_000);
    }
    expect(minutes).toEqual([0, 1, 3, 6, 12, 22, 32, 42]);
    expect([0, 1, 2, 3, 4, 5, 1_000].map((sweeps) => runResendDelayMs(sweeps) / 1000)).toEqual([
      45, 90, 180, 360, 600, 600, 600,
    ]);
  });

  it('starts with 45 s again after a commit of the run', async () => {
    const { run, ingest } = accepted();
    await runs.ingest(ingest);
    for (let sent = 0; sent < 5; sent += 1) {
      clock.advance(20 * 60_000);
      await swept();
    }
    const at = new Date(clock.now()).toISOString();
    await runs.commit(new ChangeDraft(run, at).note({ dueAt: at }).seal());
    expect((await swept()).runs).toBe(1);
    clock.advance(60_000);
    expect((await swept()).runs).toBe(1);
  });

  it('leaves an item due if it could not be sent, and postpones the sent ones', async () => {
    await queued(25);
    clock.advance(30_000);
    let batches = 0;
    const hasTimeToSend = () => {
      batches += 1;
      return batches <= 2;
    };
    expect(await counts({}, { hasTimeToSend })).toEqual({ runs: 20, outboxEntries: 0, schedules: 0, left: 5 });
    expect(log.messages('warn')).toEqual(['the sweep ended before all due items were sent']);
    expect(await counts()).toEqual({ ...NOTHING, runs: 5 });
    const sent = queue.receive().map(({ runId }) => runId);
    expect(new Set(sent).size).toBe(25);
    expect(sent).toHaveLength(25);
  });

  it('sends an item again that it could not postpone: a second message is harmless, a lost one is not', async () => {
    await queued(1);
    clock.advance(30_000);
    await swept({ postponeRun: () => Promise.reject(new Error('throttled')) });
    await swept();
    expect(queue.receive()).toHaveLength(2);
  });

  it('continues after a shard that cannot be read, and returns the number of such shards', async () => {
    await queued(40);
    clock.advance(30_000);
    const due: RunStore['due'] = (shard, ...asked) =>
      shard === 3 ? Promise.reject(new Error('throttled')) : runs.due(shard, ...asked);
    const { runs: first, unreadShards } = await swept({ due });
    expect(first).toBeGreaterThan(20);
    expect(unreadShards).toBe(1);
    expect((await swept()).runs).toBe(40 - first);
  });

  it('sends nothing that is not due', async () => {
    await queued(3);
    await withOutboxEntry('run_000000ff');
    clock.advance(29_999);
    expect(await counts()).toEqual(NOTHING);
    expect(queue.receive()).toEqual([]);
    expect(outbox.receiveSeals()).toEqual([]);
  });

  it('sends a message for every due run in every shard', async () => {
    const ids = await queued(20);
    clock.advance(30_000);
    expect(await counts()).toEqual({ ...NOTHING, runs: 20 });
    expect(
      queue
        .receive()
        .map(({ runId }) => runId)
        .sort(),
    ).toEqual(ids);
  });

  it('sends an entry again after 30 s, then at growing intervals up to five minutes, after the alarm every hour, and never gives up', async () => {
    await withOutboxEntry();
    const minutes: number[] = [];
    for (let minute = 0; minute < 6 * 60; minute += 0.5) {
      await swept();
      if (outbox.receiveSeals().length > 0) minutes.push(minute);
      clock.advance(30_000);
    }
    const gaps = minutes.map((at, index) => at - (minutes[index - 1] ?? 0));
    expect(gaps).toEqual([0.5, 1, 2, 4, 5, 5, 60, 60, 60, 60, 60]);
    clock.advance(400 * 86_400_000);
    expect(await counts()).toEqual({ ...NOTHING, outboxEntries: 1 });
  });

  it('logs an outbox entry as stuck after five sends, and at each later send', async () => {
    const entry = await withOutboxEntry();
    const logged: number[] = [];
    for (let sent = 0; sent < 8; sent += 1) {
      clock.advance(60 * 60_000);
      await swept();
      logged.push(log.messages('error').length);
    }
    expect(logged).toEqual([0, 0, 0, 0, 0, 1, 2, 3]);
    expect(log.lines.at(-1)).toMatchObject({ message: LOGGED.outboxEntryStuck, details: { entry: { id: entry.id } } });
  });

  it('publishes an expired approval instead of starting its execution, which completes the outbox entry', async () => {
    const { run, ingest } = accepted({ runId: 'run_00000001' });
    await runs.ingest(ingest);
    const expiresAt = later(STORY_BEGINS_AT, 3_600_000);
    const clocks = { remindAt: STORY_BEGINS_AT, slaAt: STORY_BEGINS_AT, expiresAt };
    const approval = { tenant: 'acme', runId: run.runId, approvalId: 'a_1' };
    const entry = newOutboxEntry({ kind: 'start_approval', ...approval, clocks }, STORY_BEGINS_AT);
    await runs.commit(new ChangeDraft(run, STORY_BEGINS_AT).move('canceled', BY).enqueue(entry).seal());
    clock.advance(30_000);
    await swept();
    expect(outbox.startedApprovals()).toHaveLength(1);
    clock.advance(3_600_000);
    await swept();
    expect(outbox.startedApprovals()).toHaveLength(1);
    expect(outbox.receiveFollows()).toEqual([{ entryId: entry.id, ...approval }]);
  });

  it('6.7 stuck outbox entries first: what was due longest is recovered before newly due work, even if time is short', async () => {
    const stuck = await withOutboxEntry('run_000000ff');
    for (let attempts = 0; attempts < 6; attempts += 1) {
      clock.advance(resendDelayMs(attempts));
      await swept();
      outbox.receiveSeals();
    }
    clock.advance(60 * 60_000);
    const at = new Date(clock.now()).toISOString();
    for (let index = 0; index < 40; index += 1) {
      await runs.ingest(accepted({ runId: `run_${index.toString(16).padStart(8, '0')}`, at }).ingest);
    }
    clock.advance(60_000);
    let batches = 0;
    const oneBatch = { hasTimeToSend: () => ++batches === 1 };
    expect(await counts({}, oneBatch)).toEqual({ ...NOTHING, outboxEntries: 1, runs: 9, left: 31 });
    expect(outbox.receiveSeals()).toMatchObject([{ entryId: stuck.id }]);
  });

  it('two concurrent sweeps send an outbox entry once', async () => {
    await withOutboxEntry();
    clock.advance(30_000);
    await Promise.all([swept(), swept()]);
    expect(outbox.receiveSeals()).toHaveLength(1);
  });

  it('counts before it sends: an outbox entry whose send fails is sent again later', async () => {
    await withOutboxEntry();
    clock.advance(30_000);
    passage = () => Promise.reject(new Error('down'));
    expect(await counts()).toEqual(NOTHING);
    passage = undisturbed;
    expect(await counts()).toEqual(NOTHING);
    clock.advance(60_000);
    expect(await counts()).toEqual({ ...NOTHING, outboxEntries: 1 });
  });

  it('sends the rest if one message cannot be sent', async () => {
    await queued(12);
    await withOutboxEntry('run_000000ff');
    clock.advance(30_000);
    let sends = 0;
    passage = (name, run) => {
      sends += 1;
      return name.startsWith('outbox') || sends === 1 ? Promise.reject(new Error('down')) : run();
    };
    expect(await counts()).toEqual({ ...NOTHING, runs: 11 });
    expect(log.messages('error')).toEqual(['a due item was not sent', 'a due item was not sent']);
  });

  it('does not send an outbox entry that was completed meanwhile', async () => {
    const entry = await withOutboxEntry();
    clock.advance(30_000);
    const outboxEntries: RunStore['outboxEntries'] = async (...asked) => {
      const found = await runs.outboxEntries(...asked);
      const record = { documentKey: 'd', envelopeKey: 'e', sha256: 's', sizeBytes: 1, sealedAt: STORY_BEGINS_AT };
      const logged = { runId: entry.runId, sha256: 's', head: 'h', count: 1, sealedAt: STORY_BEGINS_AT };
      await runs.completeSeal(entry.id, 'acme', entry.runId, record, { logged, outboxEntries: [] });
      return found;
    };
    expect(await counts({ outboxEntries })).toEqual(NOTHING);
    expect(outbox.receiveSeals()).toEqual([]);
  });

  it.each([
    ['of a kind it does not know', { kind: 'bake_a_cake' }, 'unknown kind'],
    ['without what its kind needs', { kind: 'follow_approval' }, 'malformed: approvalId, revision'],
    ['without a time', { createdAt: 7 }, 'malformed: createdAt'],
    ['without a count', { attempts: 'many' }, 'malformed: attempts'],
  ])('marks an entry %s as failed at once, and logs it once', async (_what, differing, reason) => {
    const stored = { ...(await withOutboxEntry()), ...differing } as unknown as OutboxEntry;
    const broken = async () => [stored];
    clock.advance(30_000);
    const failed: unknown[] = [];
    const failOutbox: RunStore['failOutbox'] = async (entry, why) => {
      failed.push({ id: entry.id, ...why });
      return failed.length === 1;
    };
    await swept({ outboxEntries: broken, failOutbox });
    await swept({ outboxEntries: broken, failOutbox });
    expect(failed[0]).toEqual({ id: stored.id, at: later(STORY_BEGINS_AT, 30_000), reason });
    expect(log.messages('error')).toEqual([LOGGED.outboxEntryStuck]);
    expect([outbox.receiveSeals(), outbox.startedApprovals(), outbox.receiveFollows()]).toEqual([[], [], []]);
  });

  it('does not send a failed entry until an operator redrives it', async () => {
    const entry = await withOutboxEntry();
    await runs.failOutbox(entry, { at: STORY_BEGINS_AT, reason: 'unknown kind' });
    clock.advance(400 * 86_400_000);
    expect(await swept()).toEqual({ ...NOTHING, tenants: { acme: { due: 0 } } });
    const [stuck] = await runs.stuckOutbox('acme', 10);
    expect(stuck).toMatchObject({ id: entry.id, failed: { reason: 'unknown kind' } });
    await runs.redriveOutbox(stuck as OutboxEntry, new Date(clock.now()).toISOString());
    expect(await swept()).toMatchObject({ ...NOTHING, outboxEntries: 1 });
    expect(outbox.receiveSeals()).toHaveLength(1);
    expect(await runs.stuckOutbox('acme', 10)).toEqual([]);
  });
});

it('an entry is first due 30 s after it was made, and its wait doubles up to five minutes, after the alarm an hour', () => {
  const entry = newOutboxEntry(
    {
      kind: 'start_approval',
      tenant: 'acme',
      runId: 'run_1',
      approvalId: 'a_1',
      clocks: { remindAt: STORY_BEGINS_AT, slaAt: STORY_BEGINS_AT, expiresAt: STORY_BEGINS_AT },
    },
    STORY_BEGINS_AT,
  );
  expect(entry).toMatchObject({
    id: 'acme.run_1.start_approval.a_1',
    attempts: 0,
    dueAt: later(STORY_BEGINS_AT, 30_000),
  });
  expect([0, 1, 2, 3, 4, 5, 6, 1_000].map((attempts) => resendDelayMs(attempts) / 1000)).toEqual([
    30, 60, 120, 240, 300, 300, 3_600, 3_600,
  ]);
  // People need a digest soon after Slack is back.
  expect(resendDelayMs(1_000, 'list_overdue') / 1000).toBe(300);
});
