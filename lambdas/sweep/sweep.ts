import { LOGGED } from '../entry/environment.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import { entryFlaw, isStuck, type OutboxDispatcher, type OutboxEntry, resendDelayMs } from '../outbox/outbox.ts';
import { later } from '../run/lease.ts';
import type { DueItem, DueRun, RunStore } from '../run/run-store.ts';
import { SENT_TOGETHER_MAX, type StepQueue } from '../run-changes/step-queue.ts';
import { type DueReader, dueByTenant, inTurns } from './due-by-tenant.ts';

/** Requests under way at once: sending waits for the network, so a few side by side use the time of one. */
const BATCHES_AT_ONCE = 16;
/** Less than the minute between two sweeps, so that a run that is sent in vain once is sent by the next sweep too. */
const FIRST_RUN_RESEND_MS = 45_000;
const LONGEST_RUN_RESEND_MS = 10 * 60_000;

/** min(45 s x 2^n, 10 min): a run that waits for a slot, or that every worker fails at, asks for less and less. */
export function runResendDelayMs(sweeps: number): number {
  return Math.min(FIRST_RUN_RESEND_MS * 2 ** sweeps, LONGEST_RUN_RESEND_MS);
}

export interface Sweeper extends DueReader {
  runs: Pick<RunStore, 'due' | 'outboxEntries' | 'postponeRun' | 'bumpOutbox' | 'failOutbox'>;
  queue: Pick<StepQueue, 'sendTogether'>;
  outbox: OutboxDispatcher;
  clock: Clock;
  /** False when too little of this invocation is left to send another batch. */
  hasTimeToSend(): boolean;
}

export interface Swept {
  runs: number;
  promises: number;
  /** Due, and not sent because the time was up: the next sweep begins with them. */
  left: number;
  /** When the row became due that was due longest. */
  oldestDueAt?: string;
  /** Shards of the due index that could not be read, if any: nobody knows what is due there. */
  unreadShards?: number;
}

/**
 * The net under every message: whatever is due is sent again. It decides nothing itself: a run that someone else has
 * moved on meanwhile is left alone by the worker's own conditions, and a promise is fulfilled once by its performer's.
 *
 *   read every page of every shard -> tenants take turns -> send ten together -> postpone what was sent -> the next ten
 *
 * What was sent is due again later, at first before the next sweep, then at ever longer intervals until a commit of the
 * run sets a new time. So a sweep that is cut off has made progress, and nothing that keeps coming back is in the way of
 * anything else. Sent first, postponed second: what was not sent stays due, and a second message is harmless.
 */
export async function sweep(sweeper: Sweeper): Promise<Swept> {
  const now = isoNow(sweeper.clock);
  const { byTenant, unreadShards } = await dueByTenant(sweeper, now);
  const due = inTurns(byTenant);
  const [oldestDueAt] = [...byTenant.values()].flatMap(([longestDue]) => longestDue?.dueAt ?? []).sort();
  const swept: Swept = {
    runs: 0,
    promises: 0,
    left: 0,
    ...(oldestDueAt !== undefined && { oldestDueAt }),
    ...(unreadShards > 0 && { unreadShards }),
  };
  const sendBatches = async () => {
    for (let batch = take(due); batch.length > 0; batch = take(due)) {
      if (sweeper.hasTimeToSend()) await sendBatch(sweeper, batch, now, swept);
      else swept.left += batch.length;
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, sendBatches));
  if (swept.left > 0) sweeper.log.warn('the time was up before everything due was sent', { ...swept });
  return swept;
}

/** The next few, whoever of those side by side asks for them. */
function take(due: Generator<DueItem>): DueItem[] {
  const batch: DueItem[] = [];
  while (batch.length < SENT_TOGETHER_MAX) {
    const { value, done } = due.next();
    if (done) break;
    batch.push(value);
  }
  return batch;
}

/** One thing that cannot be sent must not keep the others waiting: it is still due at the next sweep. */
async function sendBatch(sweeper: Sweeper, batch: DueItem[], now: string, swept: Swept): Promise<void> {
  const runs = batch.filter((item) => item.kind === 'run');
  const entryIds = batch.flatMap((item) => (item.kind === 'outbox' ? [item.entryId] : []));
  const sends = await Promise.allSettled([
    sendRuns(sweeper, runs, now, swept),
    sendOutbox(sweeper, entryIds, now, swept),
  ]);
  for (const sent of sends) if (sent.status === 'rejected') notSent(sweeper, sent.reason);
}

const notSent = ({ log }: Sweeper, error: unknown) => log.error('a due item was not sent', { error });

async function sendRuns(sweeper: Sweeper, runs: DueRun[], now: string, swept: Swept): Promise<void> {
  const failed = new Set(await sweeper.queue.sendTogether(runs));
  if (failed.size > 0) notSent(sweeper, `the queue did not take ${failed.size} of ${runs.length} messages`);
  const sent = runs.filter((run) => !failed.has(run));
  swept.runs += sent.length;
  const postponed = await Promise.allSettled(
    sent.map((run) => sweeper.runs.postponeRun(run, later(now, runResendDelayMs(run.sweeps)))),
  );
  for (const each of postponed) {
    if (each.status === 'rejected') sweeper.log.warn('a run that was sent stays due', { error: each.reason });
  }
}

async function sendOutbox(sweeper: Sweeper, entryIds: string[], now: string, swept: Swept): Promise<void> {
  if (entryIds.length === 0) return;
  const entries = await sweeper.runs.outboxEntries(entryIds);
  for (const sent of await Promise.allSettled(entries.map((entry) => resend(sweeper, entry, now)))) {
    if (sent.status === 'rejected') notSent(sweeper, sent.reason);
    else if (sent.value) swept.promises += 1;
  }
}

/** Counted before it is sent: two sweeps at once send an entry once. What can never be sent fails for good, at once. */
async function resend(sweeper: Sweeper, entry: OutboxEntry, now: string): Promise<boolean> {
  const flaw = entryFlaw(entry);
  if (flaw !== undefined) {
    const failed = await sweeper.runs.failOutbox(entry, { at: now, reason: flaw });
    if (failed) sweeper.log.error(LOGGED.outboxEntryStuck, { entry, reason: flaw });
    return false;
  }
  if (!(await sweeper.runs.bumpOutbox(entry, later(now, resendDelayMs(entry.attempts + 1))))) return false;
  if (isStuck(entry)) sweeper.log.error(LOGGED.outboxEntryStuck, { entry, reason: `sent ${entry.attempts} times` });
  await sweeper.outbox.dispatch(dueNow(entry, now));
  return true;
}

/** An approval whose time is over is not held any more: whoever follows it does what is left, and ends the promise. */
function dueNow(entry: OutboxEntry, now: string): OutboxEntry {
  if (entry.kind !== 'start_approval' || entry.clocks.expiresAt > now) return entry;
  return { ...entry, kind: 'follow_approval', revision: 0 };
}
