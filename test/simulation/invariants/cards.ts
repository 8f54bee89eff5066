import { isAnnouncedFirst, startEntryId } from '../../../lambdas/outbox/outbox.ts';
import { type Approval, isOpen } from '../../../lambdas/run/approval.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { isAnnouncer } from '../environment/functions.ts';
import type { Invocation } from '../environment/invocation.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';

/** Without faults, the sweeper starts the execution of an open approval within this time after its reminder is due. */
const STARTED_WITHIN_MS = 3 * 60_000;

interface Card {
  channel: string;
  ts: string;
}

interface Known {
  situations: Situations;
  approval: (approvalId: string) => Approval | undefined;
  approvals: () => Iterable<Approval>;
  nowMs: () => number;
  /** Clocks differ by less than the lease of a claim allows. */
  clocksAreClose: boolean;
  skewMs: number;
}

/** The cards in Slack, and what each approval is held by until somebody decides on it. */
export class CardInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #known: Known;
  /** The outbox entries of announcements. */
  readonly #claimed = new Set<string>();
  /** The approvals whose announcement has posted a card. */
  readonly #announced = new Set<string>();
  /** A function of an execution that was suspended may post a second card: better than none. */
  readonly #repeated = new Set<string>();
  /** By approval: each card with the approval as it shows it. */
  readonly #shown = new Map<string, Map<string, Approval>>();

  constructor(report: Report, store: MemoryRunStore, known: Known) {
    this.#report = report;
    this.#store = store;
    this.#known = known;
  }

  post(by: Pick<Invocation, 'id'>, approval: Approval): Card {
    const { approvalId, channel } = approval;
    const cards = this.#shown.get(approvalId) ?? new Map<string, Approval>();
    this.#shown.set(approvalId, cards);
    const ts = `${approvalId} ${cards.size + 1}`;
    cards.set(ts, approval);
    if (isAnnouncer(by)) this.#announced.add(approvalId);
    if (cards.size > 1) this.#repeated.add(approvalId);
    if (cards.size > 1 && this.#announced.has(approvalId) && this.#known.clocksAreClose) {
      this.#report('an approval has one card', `${approvalId}, posted again by ${by.id}`);
    }
    const stored = this.#known.approval(approvalId);
    if (stored && !isOpen(stored)) this.#known.situations.record('an approval is closed while its card is posted');
    return { channel, ts };
  }

  find({ approvalId, channel }: Approval): Card | undefined {
    const [ts] = [...(this.#shown.get(approvalId)?.keys() ?? [])];
    if (ts !== undefined) this.#known.situations.record('an execution finds the card of an earlier attempt');
    return ts === undefined ? undefined : { channel, ts };
  }

  /** Who draws reads the approval afterwards, and draws again if it has changed: slack-cards.test.ts. */
  update(approval: Approval): void {
    const { approvalId, card } = approval;
    const stored = this.#known.approval(approvalId);
    if (card) this.#shown.get(approvalId)?.set(card.ts, stored ?? approval);
  }

  announced(by: Pick<Invocation, 'id'>, entryId: string, claimed: boolean): void {
    if (isAnnouncer(by) && claimed) this.#claimed.add(entryId);
    if (isAnnouncer(by) && !claimed) this.#known.situations.record('a second announcement changes nothing');
  }

  /** The card was posted without an execution. */
  stored(): void {
    this.#known.situations.record('an approval is announced without an execution');
  }

  /** An entry was removed or replaced. Nobody would remind people of an open approval that has neither it nor a token. */
  checkHeld(entryId: string): void {
    for (const approval of this.#known.approvals()) {
      const { tenant, runId, approvalId, expiresAt } = approval;
      const expired = Date.parse(expiresAt) <= this.#known.nowMs() + this.#known.skewMs;
      if (startEntryId(approval) !== entryId || !isOpen(approval) || expired) continue;
      const hasEntry = [...this.#store.inside.outbox()].some(({ id }) => id === entryId);
      if (hasEntry || this.#store.inside.taskToken(tenant, runId, approvalId)) continue;
      this.#report('an open approval has an outbox entry or a token', approvalId);
    }
  }

  /** No work is left, so every approval is closed. `executions`: the approvals that have one. */
  checkFinal(executions: ReadonlySet<string>, hadFaults: boolean): void {
    for (const [approvalId, cards] of this.#shown) {
      for (const [ts, shown] of cards) {
        const isStored = this.#known.approval(approvalId)?.card?.ts === ts;
        const isLost = !isStored && this.#repeated.has(approvalId);
        if (isOpen(shown) && !isLost) this.#report('every card shows the decision', ts);
      }
    }
    for (const approval of this.#known.approvals()) {
      const { approvalId, remindAt, decidedAt = approval.expiresAt } = approval;
      const openMs = Date.parse(decidedAt) - Date.parse(remindAt);
      const started = executions.has(approvalId);
      if (started && isAnnouncedFirst(approval)) {
        this.#known.situations.record('an execution starts after the announcement of its approval');
      }
      if (hadFaults || !this.#known.clocksAreClose) continue;
      if (!started && openMs > STARTED_WITHIN_MS) {
        this.#report('an execution waits for an approval that is open at its reminder', approvalId);
      }
      if (started && openMs <= 0 && this.#claimed.has(startEntryId(approval))) {
        this.#report('an approval that is decided before its reminder needs no execution', approvalId);
      }
    }
  }
}
