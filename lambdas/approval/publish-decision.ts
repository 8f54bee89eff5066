import { type Clock, isoNow } from '../entry/ports.ts';
import { startEntryId } from '../outbox/outbox.ts';
import { type Approval, type ApprovalStatus, closedAt, isOpen } from '../run/approval.ts';
import { later, QUARANTINE_MS } from '../run/lease.ts';
import type { RunStore } from '../run/run-store.ts';
import { closeDigestOf, type DigestCloser } from './digest/close-digest.ts';
import { type Cards, unlessRefused } from './wait-for-decision.ts';

/** Wakes the execution that waits with this token. A token that nothing waits with is ignored. */
export interface TaskTokens {
  complete(taskToken: string, decision: { approvalId: string; status: ApprovalStatus }): Promise<void>;
}

export interface Publisher extends DigestCloser {
  runs: Pick<RunStore, 'approval' | 'approvals' | 'taskToken' | 'cancelStart' | 'completeOutboxEntry'>;
  cards: Cards;
  tokens: TaskTokens;
  clock: Clock;
}

/**
 * Publishes a change of an approval, and is retried until it succeeds: wakes the execution of a closed approval, and shows
 * the change on the card and, if it was the last one, on the digest of overdue approvals. The decision is already stored; nothing here can change it.
 */
export async function publishDecision(
  publisher: Publisher,
  { entryId, tenant, runId, approvalId }: { entryId: string; tenant: string; runId: string; approvalId: string },
): Promise<void> {
  const { runs, cards, tokens, log } = publisher;
  const approval = await runs.approval(tenant, runId, approvalId);
  if (!approval) return log.warn('asked to publish an approval that does not exist', { tenant, approvalId });
  if (!isOpen(approval)) {
    const taskToken = await runs.taskToken(tenant, runId, approvalId);
    if (taskToken !== undefined) await tokens.complete(taskToken, { approvalId, status: approval.status });
    // Without a token no execution waits. One that starts meanwhile finds the approval closed and ends.
    else await runs.cancelStart(startEntryId(approval));
  }
  await cards.update(approval);
  if (!isOpen(approval) && approval.escalatedAt !== undefined) await closeDigestOf(publisher, approval);
  if (!isOpen(approval) && !approval.card && !(await updateLostCard(publisher, approval))) return;
  await runs.completeOutboxEntry(entryId);
}

/**
 * A function that read the approval as open may have posted a card that no row names, or may still do so. So the card is searched
 * for after every such function has ended. False before that: the outbox entry stays due, and the sweeper sends it again.
 */
async function updateLostCard({ cards, messages, clock, log }: Publisher, approval: Approval): Promise<boolean> {
  if (!(await messages.reaches(approval.tenant))) return true;
  if (isoNow(clock) < later(closedAt(approval), QUARANTINE_MS)) return false;
  const card = await cards.find(approval).catch(unlessRefused(log, approval));
  if (card) await cards.update({ ...approval, card });
  return true;
}
