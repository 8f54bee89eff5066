import { type AttemptDeadline, withinDeadline } from '../connectors/attempt-deadline.ts';
import { OutcomeUnknown, TargetRefused } from '../connectors/target-errors.ts';
import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { resendDelayMs, type StartApproval, startWithReminder } from '../outbox/outbox.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import { CountersignError } from '../run/errors.ts';
import { arrivesBefore, later } from '../run/lease.ts';
import type { RunStore } from '../run/run-store.ts';
import type { Cards } from './wait-for-decision.ts';

/** Others may edit or vote while the card is posted; it is stored with their changes. */
const TRIES_MAX = 8;
/** Each waiting invocation occupies a slot of the account. The sweeper starts an execution for who did not succeed. */
const PAUSES_MAX = 2;
/** From the claim until the card is sent, if nothing is slow. */
const TIME_TO_POST_MS = 5_000;

export interface Announcer {
  runs: Pick<RunStore, 'approval' | 'bumpOutbox' | 'storeCard' | 'completeOutboxEntry'>;
  cards: Cards;
  clock: Clock;
  pause: { random(): number; sleep(ms: number): Promise<void> };
  log: Log;
}

/**
 * Posts the card of a new approval, right after the commit that requested it. Most approvals are decided before people are
 * reminded, and need no execution:
 *
 *   claim the outbox entry -> read the approval -> post the card -> store the card; the entry is due with the reminder
 *
 * The due time of the entry is the lease of the claim: only the invocation that claimed the entry posts, and only if the card
 * arrives before the entry is due. When the entry is due, the sweeper starts the execution, which searches for the card before
 * it posts one. So nothing is lost if this invocation fails or never happens, and a second one changes nothing.
 */
export async function announceApproval(announcer: Announcer, entry: StartApproval): Promise<void> {
  const { runs, clock, log } = announcer;
  const { tenant, approvalId } = entry;
  // The commit was slow, or this invocation is late. Usually the time stays, because moving it in the index costs two units.
  const isLate = !arrivesBefore(entry.dueAt, clock.now() + TIME_TO_POST_MS);
  const dueAt = isLate ? later(isoNow(clock), resendDelayMs(0)) : entry.dueAt;
  // Another invocation or the sweeper was first, or the approval is closed.
  if (!(await runs.bumpOutbox(entry, dueAt))) return;
  try {
    await postAndStore(announcer, { ...entry, attempts: entry.attempts + 1, dueAt });
  } catch (error) {
    if (!isOfTarget(error)) throw error;
    log.warn('an approval could not be announced; the sweeper starts its execution', { tenant, approvalId, error });
  }
}

async function postAndStore(announcer: Announcer, claimed: StartApproval): Promise<void> {
  const { runs, cards, log } = announcer;
  const { tenant, runId, approvalId } = claimed;
  const read = () => runs.approval(tenant, runId, approvalId);
  let approval = await read();
  let shown = approval?.revision;
  let card: Approval['card'];
  if (approval && isOpen(approval)) card = await post(announcer, claimed, approval);
  for (let tries = 1; approval && isOpen(approval); tries += 1) {
    const notified: Partial<Approval> = { status: 'notified', card };
    if (approval.revision !== shown) {
      // The card shows the approval as it was before an edit or a vote. If this fails, the entry stays due.
      await cards.update({ ...approval, ...notified, revision: approval.revision + 1 });
      shown = approval.revision;
    }
    const result = await runs.storeCard(claimed, approval, notified, startWithReminder(claimed));
    if (result === 'stored') return;
    if (result === 'sent_again')
      return log.warn('the execution of an approval stores its card', { tenant, approvalId });
    if (tries === TRIES_MAX) throw new Error(`approval ${approvalId} is changing too fast`);
    approval = await read();
    // The response to our own write was lost.
    if (approval?.status === 'notified') return;
  }
  // Closed while the card was posted: no row names the card, so the decision must be shown on it here.
  if (approval && card) await cards.update({ ...approval, card });
  await runs.completeOutboxEntry(claimed.id);
}

/** Nobody has posted the card before, because nobody has claimed the entry before. */
async function post(announcer: Announcer, { dueAt }: StartApproval, approval: Approval): Promise<Approval['card']> {
  const { cards, clock, pause } = announcer;
  const deadline: AttemptDeadline = {
    allowMs({ system, timeoutMs }) {
      if (arrivesBefore(dueAt, clock.now())) return timeoutMs;
      throw new CountersignError('LEASE_LOST', `too little time is left to call ${system} before ${dueAt}`);
    },
    requestNotSent() {},
  };
  for (let pauses = 0; ; pauses += 1) {
    try {
      return await withinDeadline(deadline, () => cards.post(approval, false));
    } catch (error) {
      // Slack takes about one message a second in a channel. It has posted nothing that it refuses.
      const retryAfterMs = error instanceof TargetRefused && error.retryable ? error.retryAfterMs : undefined;
      if (retryAfterMs === undefined || pauses === PAUSES_MAX) throw error;
      // Others wait for the same channel. All would come back at the same time.
      const pauseMs = retryAfterMs * (1 + pause.random());
      if (!arrivesBefore(dueAt, clock.now() + pauseMs)) throw error;
      await pause.sleep(pauseMs);
    }
  }
}

/** Slack refused the card or did not respond, or the time was up before the request. */
const isOfTarget = (error: unknown): boolean =>
  error instanceof TargetRefused ||
  error instanceof OutcomeUnknown ||
  (error instanceof CountersignError && error.code === 'LEASE_LOST');
