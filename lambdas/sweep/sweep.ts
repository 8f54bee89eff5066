import { LOGGED } from '../entry/environment.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import { checkEntry, isStuck, type OutboxDispatcher, type OutboxEntry, resendDelayMs } from '../outbox/outbox.ts';
import { later } from '../run/lease.ts';
import type { DueItem, DueRun, RunStore, SweepRecord } from '../run/run-store.ts';
import { SENT_TOGETHER_MAX, type StepQueue } from '../run-changes/step-queue.ts';
import { type DueReader, dueByTenant, inTurns } from './due-by-tenant.ts';
import { type FlagReader, findFlags } from './find-flags.ts';

/** Concurrent batches: sending is mostly waiting for the network. */
const BATCHES_AT_ONCE = 16;
/** Less than the minute between two sweeps, so that the next sweep sends the run again. */
const FIRST_RUN_RESEND_MS = 45_000;
const LONGEST_RUN_RESEND_MS = 10 * 60_000;

/** min(45 s x 2^n, 10 min): a run that waits for a slot, or fails in every worker, is sent less and less often. */
export function runResendDelayMs(sweeps: number): number {
  return Math.min(FIRST_RUN_RESEND_MS * 2 ** sweeps, LONGEST_RUN_RESEND_MS);
}

type DueSchedule = DueItem & { kind: 'schedule' };

export interface Sweeper extends DueReader, FlagReader {
  runs: Pick<RunStore, 'due' | 'outboxEntries' | 'postponeRun' | 'bumpOutbox' | 'failOutbox' | 'lastSweep'>;
  queue: Pick<StepQueue, 'sendTogether'>;
  outbox: OutboxDispatcher;
  /** Starts the runs of the due slots of a schedule. */
  fireSchedule(due: DueSchedule): Promise<unknown>;
  clock: Clock;
  /** False if too little time of this invocation is left for another batch. */
  hasTimeToSend(): boolean;
}

export interface Swept {
  runs: number;
  outboxEntries: number;
  schedules: number;
  /** Due items that were not sent because the time was up. The next sweep starts with them. */
  left: number;
  /** The due time of the item that has been due longest. */
  oldestDueAt?: string;
  /** The number of shards of the due index that could not be read. */
  unreadShards?: number;
  /** What was due, by tenant. Without tenants whose flags could not be read. */
  tenants: Record<string, Omit<SweepRecord, 'at'>>;
}

/**
 * Sends everything again that is due, so that no lost message stops a run. It decides nothing itself: the conditions of
 * the receivers make a second message harmless. Slots of schedules are due rows too.
 *
 *   read every page of every shard -> tenants take turns -> send ten together -> postpone what was sent -> the next ten
 *
 * A sent item is due again later: first before the next sweep, then at growing intervals, until a commit of the run sets
 * a new time. So an interrupted sweep has made progress, and items that are due again and again do not block others.
 * Items are postponed after they are sent, so an item that was not sent stays due.
 */
export async function sweep(sweeper: Sweeper): Promise<Swept> {
  const now = isoNow(sweeper.clock);
  const flags = await findFlags(sweeper, now);
  const woken = [...flags].flatMap(([tenant, { wakes }]) => (wakes ? [tenant] : []));
  const { byTenant, unreadShards } = await dueByTenant(sweeper, now);
  const due = inTurns(byTenant);
  const [oldestDueAt] = [...byTenant.values()].flatMap(([longestDue]) => longestDue?.dueAt ?? []).sort();
  const swept: Swept = {
    runs: 0,
    outboxEntries: 0,
    schedules: 0,
    left: 0,
    ...(oldestDueAt !== undefined && { oldestDueAt }),
    ...(unreadShards > 0 && { unreadShards }),
    tenants: Object.fromEntries(
      [...flags].map(([tenant, { flagsOff }]) => {
        const items = byTenant.get(tenant) ?? [];
        const isOff = Object.keys(flagsOff).length > 0;
        return [tenant, { due: items.length, oldestDueAt: items[0]?.dueAt, ...(isOff && { flagsOff }) }];
      }),
    ),
  };
  const sendBatches = async () => {
    for (let batch = take(due); batch.length > 0; batch = take(due)) {
      if (sweeper.hasTimeToSend()) await sendBatch(sweeper, batch, now, swept);
      else swept.left += batch.length;
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, sendBatches));
  if (woken.length > 0) await wakeHeldRuns(sweeper, woken, now);
  if (swept.left > 0) sweeper.log.warn('the sweep ended before all due items were sent', { ...swept });
  return swept;
}

/**
 * A flag is on again. Runs that waited for it for long are due some minutes from now: they get a message at once, those
 * that began to wait first before the others. A message for another run changes nothing.
 */
async function wakeHeldRuns(sweeper: Sweeper, tenants: readonly string[], now: string): Promise<void> {
  const { byTenant } = await dueByTenant(sweeper, later(now, LONGEST_RUN_RESEND_MS));
  const waiting = inTurns(new Map([...byTenant].filter(([tenant]) => tenants.includes(tenant))));
  for (let batch = take(waiting); batch.length > 0 && sweeper.hasTimeToSend(); batch = take(waiting)) {
    const runs = batch.filter((item) => item.kind === 'run' && item.dueAt > now);
    if (runs.length > 0) await sweeper.queue.sendTogether(runs as DueRun[]);
  }
}

/** The next batch. The concurrent senders share one generator. */
function take(due: Generator<DueItem>): DueItem[] {
  const batch: DueItem[] = [];
  while (batch.length < SENT_TOGETHER_MAX) {
    const { value, done } = due.next();
    if (done) break;
    batch.push(value);
  }
  return batch;
}

/** An item that cannot be sent must not block the others; it is still due in the next sweep. */
async function sendBatch(sweeper: Sweeper, batch: DueItem[], now: string, swept: Swept): Promise<void> {
  const runs = batch.filter((item) => item.kind === 'run');
  const entryIds = batch.flatMap((item) => (item.kind === 'outbox' ? [item.entryId] : []));
  const sends = await Promise.allSettled([
    sendRuns(sweeper, runs, now, swept),
    sendOutbox(sweeper, entryIds, now, swept),
    ...batch.filter((item) => item.kind === 'schedule').map((due) => fire(sweeper, due, swept)),
  ]);
  for (const sent of sends) if (sent.status === 'rejected') notSent(sweeper, sent.reason);
}

/** A schedule moves to its next slot itself. If that fails, it stays due. */
async function fire(sweeper: Sweeper, due: DueSchedule, swept: Swept): Promise<void> {
  await sweeper.fireSchedule(due);
  swept.schedules += 1;
}

const notSent = ({ log }: Sweeper, error: unknown) => log.error('a due item was not sent', { error });

async function sendRuns(sweeper: Sweeper, runs: DueRun[], now: string, swept: Swept): Promise<void> {
  const failed = new Set(await sweeper.queue.sendTogether(runs));
  if (failed.size > 0) notSent(sweeper, `the queue rejected ${failed.size} of ${runs.length} messages`);
  const sent = runs.filter((run) => !failed.has(run));
  swept.runs += sent.length;
  const postponed = await Promise.allSettled(
    sent.map((run) => sweeper.runs.postponeRun(run, later(now, runResendDelayMs(run.sweeps)))),
  );
  for (const each of postponed) {
    if (each.status === 'rejected') sweeper.log.warn('a sent run could not be postponed', { error: each.reason });
  }
}

async function sendOutbox(sweeper: Sweeper, entryIds: string[], now: string, swept: Swept): Promise<void> {
  if (entryIds.length === 0) return;
  const entries = await sweeper.runs.outboxEntries(entryIds);
  for (const sent of await Promise.allSettled(entries.map((entry) => resend(sweeper, entry, now)))) {
    if (sent.status === 'rejected') notSent(sweeper, sent.reason);
    else if (sent.value) swept.outboxEntries += 1;
  }
}

/** Counts the attempt before it sends, so that two concurrent sweeps send an entry once. An invalid entry fails at once. */
async function resend(sweeper: Sweeper, entry: OutboxEntry, now: string): Promise<boolean> {
  const problem = checkEntry(entry);
  if (problem !== undefined) {
    const failed = await sweeper.runs.failOutbox(entry, { at: now, reason: problem });
    if (failed) sweeper.log.error(LOGGED.outboxEntryStuck, { entry, reason: problem });
    return false;
  }
  // The index may be older than the row: somebody has claimed the entry since, and may be posting a card.
  if (entry.dueAt > now) return false;
  if (!(await sweeper.runs.bumpOutbox(entry, later(now, resendDelayMs(entry.attempts + 1, entry.kind))))) return false;
  if (isStuck(entry)) sweeper.log.error(LOGGED.outboxEntryStuck, { entry, reason: `sent ${entry.attempts} times` });
  await sweeper.outbox.dispatch(dueNow({ ...entry, attempts: entry.attempts + 1 }, now));
  return true;
}

/** An expired approval needs no state machine: publishing it does the rest and removes the entry. */
function dueNow(entry: OutboxEntry, now: string): OutboxEntry {
  if (entry.kind !== 'start_approval' || entry.clocks.expiresAt > now) return entry;
  return { ...entry, kind: 'follow_approval', revision: 0 };
}
