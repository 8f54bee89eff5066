import { LOGGED } from '../entry/environment.ts';
import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { OUTBOX_ALARM_ATTEMPTS, type OutboxDispatcher, OutboxEntry, resendDelayMs } from '../outbox/outbox.ts';
import { later } from '../run/lease.ts';
import { DUE_SHARDS, type DueItem, type RunStore } from '../run/run-store.ts';
import type { StepQueue } from '../worker/step-queue.ts';

/** More than this per shard waits a minute for the next sweep. */
const DUE_PER_SHARD_MAX = 500;

export interface Sweeper {
  runs: Pick<RunStore, 'due' | 'bumpOutbox'>;
  queue: StepQueue;
  outbox: OutboxDispatcher;
  clock: Clock;
  log: Log;
}

export interface Swept {
  runs: number;
  promises: number;
}

/**
 * The net under every message: whatever is due is sent again. It decides nothing itself: a run that someone else has
 * moved on meanwhile is left alone by the worker's own conditions, and a promise is fulfilled once by its performer's.
 */
export async function sweep(sweeper: Sweeper): Promise<Swept> {
  const now = isoNow(sweeper.clock);
  const swept: Swept = { runs: 0, promises: 0 };
  for (let shard = 0; shard < DUE_SHARDS; shard += 1) {
    const due = await sweeper.runs.due(shard, now, DUE_PER_SHARD_MAX);
    const sent = await Promise.allSettled(due.map((item) => send(sweeper, item, now, swept)));
    // One thing that cannot be sent must not keep the others waiting: it is still due at the next sweep.
    for (const each of sent)
      if (each.status === 'rejected') sweeper.log.error('a due item was not sent', { error: each.reason });
  }
  return swept;
}

async function send(sweeper: Sweeper, item: DueItem, now: string, swept: Swept): Promise<void> {
  if (item.kind === 'run') {
    await sweeper.queue.send({ tenant: item.tenant, runId: item.runId });
    swept.runs += 1;
  } else if (await resend(sweeper, item.entry, now)) swept.promises += 1;
}

/** Counted before it is sent: two sweeps at once send a promise once. None is ever given up. */
async function resend(sweeper: Sweeper, entry: OutboxEntry, now: string): Promise<boolean> {
  // One that a later version has promised waits for a sweeper that knows it.
  const malformed = !OutboxEntry.safeParse(entry).success;
  if (!(await sweeper.runs.bumpOutbox(entry, later(now, resendDelayMs(entry.attempts + 1))))) return false;
  if (malformed || entry.attempts >= OUTBOX_ALARM_ATTEMPTS) {
    sweeper.log.error(LOGGED.promiseNotKept, { entry, malformed });
  }
  if (malformed) return false;
  await sweeper.outbox.dispatch(dueNow(entry, now));
  return true;
}

/** An approval whose time is over is not held any more: whoever follows it does what is left, and ends the promise. */
function dueNow(entry: OutboxEntry, now: string): OutboxEntry {
  if (entry.kind !== 'start_approval' || entry.clocks.expiresAt > now) return entry;
  return { ...entry, kind: 'follow_approval', revision: 0 };
}
