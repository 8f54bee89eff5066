import type { Log } from '../entry/ports.ts';
import { type ApprovalStatus, isOpen } from '../run/approval.ts';
import type { RunStore } from '../run/run-store.ts';
import type { Cards } from './wait-for-decision.ts';

/** Wakes the state machine that waits with this token; one that waits no longer is no failure. */
export interface TaskTokens {
  answer(taskToken: string, decision: { approvalId: string; status: ApprovalStatus }): Promise<void>;
}

export interface Follower {
  runs: Pick<RunStore, 'approval' | 'taskToken' | 'fulfilled'>;
  cards: Cards;
  tokens: TaskTokens;
  log: Log;
}

/**
 * What follows from a change of an approval, done again until it is done: a closed one wakes its state machine with what
 * was decided, and the card shows it. The decision itself is long stored; nothing here can change it.
 */
export async function publishDecision(
  { runs, cards, tokens, log }: Follower,
  { entryId, tenant, runId, approvalId }: { entryId: string; tenant: string; runId: string; approvalId: string },
): Promise<void> {
  const approval = await runs.approval(tenant, runId, approvalId);
  if (!approval) return log.warn('asked to follow an approval that does not exist', { tenant, approvalId });
  if (!isOpen(approval)) {
    const taskToken = await runs.taskToken(tenant, runId, approvalId);
    // None yet: the state machine has not come to wait. When it does, it finds the approval closed and ends by itself.
    if (taskToken !== undefined) await tokens.answer(taskToken, { approvalId, status: approval.status });
  }
  await cards.update(approval);
  await runs.fulfilled(entryId);
}
