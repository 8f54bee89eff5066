import { withinDeadline } from '../connectors/attempt-deadline.ts';
import { OutcomeUnknown, TargetRefused } from '../connectors/target-errors.ts';
import { type Clock, type Ids, isoNow, type Log } from '../entry/ports.ts';
import { AttemptTime } from '../proposal/attempt-time.ts';
import { CountersignError } from '../run/errors.ts';
import { hasExpired, IN_PROCESS_LEASE, later, newLease } from '../run/lease.ts';
import { isSettled, type Notice, type NoticeOf, type NoticeStore, newNotice } from './notice-store.ts';

/** If the destination refuses a message and does not say for how long. */
const REFUSED_PAUSE_MS = 60_000;

export interface Poster {
  notices: NoticeStore;
  clock: Clock;
  ids: Ids;
  log: Log;
  timeLeftMs: () => number;
}

type Posted = NonNullable<Notice['message']>;

/** There is no such channel or person. Further attempts would not help. */
export class NoDestination extends Error {}

export interface Postable {
  /** Posts the message, marked so that it is found again. Throws `NoDestination`. */
  post(): Promise<Posted>;
  /** The message of an earlier attempt, if there is one. */
  find(since: string): Promise<Posted | undefined>;
}

/**
 * Posts a message once. Returns whether nothing is left to do; otherwise a later call continues:
 *
 *   read the notice -> claim it -> post, marked -> record that it was posted
 *
 * A claim has a lease like a step that writes: only its owner posts, and only while the message arrives before the lease
 * ends. After that, the next call searches for the mark: it records the message, or claims the notice again.
 */
export async function postOnce(poster: Poster, of: NoticeOf, message: Postable): Promise<boolean> {
  const read = (await poster.notices.notice(of)) ?? newNotice(of);
  if (isSettled(read)) return true;
  const now = isoNow(poster.clock);
  if (read.notBefore !== undefined && read.notBefore > now) return false;
  try {
    if (read.claim) {
      if (!hasExpired(read.claim.lease, now)) return false;
      const found = await message.find(read.claim.claimedAt);
      if (found) return await settle(poster, read, { notifiedAt: isoNow(poster.clock), message: found });
    }
    return await claimAndPost(poster, read, message);
  } catch (error) {
    if (!(error instanceof TargetRefused)) throw error;
    poster.log.warn('a destination could not be searched for a message; the sweeper tries again', { ...of, error });
    return false;
  }
}

async function claimAndPost(poster: Poster, read: Notice, message: Postable): Promise<boolean> {
  const claimedAt = isoNow(poster.clock);
  const lease = newLease(poster.ids.next('notice'), claimedAt, IN_PROCESS_LEASE);
  const claimed = await poster.notices.save(read, { claim: { claimedAt, lease }, notBefore: undefined });
  // Another invocation was first.
  if (!claimed) return false;
  try {
    const posted = await withinDeadline(new AttemptTime(poster, { lease }), () => message.post());
    return await settle(poster, claimed, { notifiedAt: isoNow(poster.clock), message: posted });
  } catch (error) {
    return handleFailure(poster, claimed, error);
  }
}

async function handleFailure(poster: Poster, claimed: Notice, error: unknown): Promise<boolean> {
  const { tenant, runId, id } = claimed;
  if (error instanceof NoDestination) {
    poster.log.warn('a message has no destination and is not posted', { tenant, runId, id, reason: error.message });
    return settle(poster, claimed, { skipped: error.message });
  }
  const pauseMs = pauseAfter(error);
  poster.log.warn('a message could not be posted; the sweeper tries again', { tenant, runId, id, error });
  if (pauseMs === undefined) return false;
  await poster.notices.save(claimed, { claim: undefined, notBefore: later(isoNow(poster.clock), pauseMs) });
  return false;
}

/**
 * How long to wait before the message is posted again. Undefined: its outcome is unknown, so the claim stays, and the
 * message is searched for when the lease has ended. Other errors are thrown again.
 */
export function pauseAfter(error: unknown): number | undefined {
  if (error instanceof OutcomeUnknown) return undefined;
  const notSent = error instanceof TargetRefused || (error instanceof CountersignError && error.code === 'LEASE_LOST');
  if (!notSent) throw error;
  return (error instanceof TargetRefused && error.retryAfterMs) || REFUSED_PAUSE_MS;
}

/** If another invocation has settled it first, nothing is left to do either. */
async function settle({ notices }: Poster, read: Notice, settled: Partial<Notice>): Promise<boolean> {
  const saved = await notices.save(read, { ...settled, claim: undefined, notBefore: undefined });
  if (saved) return true;
  const now = await notices.notice(read);
  return now !== undefined && isSettled(now);
}
