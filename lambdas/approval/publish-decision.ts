import { startEntryId } from '../outbox/outbox.ts';
import { type ApprovalStatus, isOpen } from '../run/approval.ts';
import type { RunStore } from '../run/run-store.ts';
import { closeDigestOf, type DigestCloser } from './digest/close-digest.ts';
import type { Cards } from './wait-for-decision.ts';

/** Wakes the execution that waits with this token. A token that nothing waits with is ignored. */
export interface TaskTokens {
  complete(taskToken: string, decision: { approvalId: string; status: ApprovalStatus }): Promise<void>;
}

export interface Publisher extends DigestCloser {
  runs: Pick<RunStore, 'approval' | 'approvals' | 'taskToken' | 'cancelStart' | 'completeOutboxEntry'>;
  cards: Cards;
  tokens: TaskTokens;
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
  await runs.completeOutboxEntry(entryId);
}
