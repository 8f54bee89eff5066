import type { Log } from '../entry/ports.ts';
import { type ApprovalStatus, isOpen } from '../run/approval.ts';
import type { RunStore } from '../run/run-store.ts';
import type { Cards } from './wait-for-decision.ts';

/** Wakes the execution that waits with this token. A token that nothing waits with is ignored. */
export interface TaskTokens {
  complete(taskToken: string, decision: { approvalId: string; status: ApprovalStatus }): Promise<void>;
}

export interface Publisher {
  runs: Pick<RunStore, 'approval' | 'taskToken' | 'completeOutboxEntry'>;
  cards: Cards;
  tokens: TaskTokens;
  log: Log;
}

/**
 * Publishes a change of an approval, and is retried until it succeeds: wakes the execution of a closed approval, and shows
 * the change on the card. The decision is already stored; nothing here can change it.
 */
export async function publishDecision(
  { runs, cards, tokens, log }: Publisher,
  { entryId, tenant, runId, approvalId }: { entryId: string; tenant: string; runId: string; approvalId: string },
): Promise<void> {
  const approval = await runs.approval(tenant, runId, approvalId);
  if (!approval) return log.warn('asked to publish an approval that does not exist', { tenant, approvalId });
  if (!isOpen(approval)) {
    const taskToken = await runs.taskToken(tenant, runId, approvalId);
    // Without a token the execution does not wait yet. When it does, it finds the approval closed and ends.
    if (taskToken !== undefined) await tokens.complete(taskToken, { approvalId, status: approval.status });
  }
  await cards.update(approval);
  await runs.completeOutboxEntry(entryId);
}
