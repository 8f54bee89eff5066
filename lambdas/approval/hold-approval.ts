import { isoNow } from '../entry/ports.ts';
import { moveRun } from '../worker/move-run.ts';
import type { Mover } from '../worker/worker.ts';
import { type Approval, isOpen } from './approval.ts';
import { changeApproval } from './close-approval.ts';
import type { Rung } from './environment.ts';

/** Others may vote while the token is being kept; it is kept beside what they left. */
const TRIES_MAX = 8;

/** Where people are told: the card and what is said about it. */
export interface Cards {
  /** Posts the card; found again by its mark if an earlier try had posted it. None where the tenant has no Slack. */
  post(approval: Approval, retrying: boolean): Promise<{ channel: string; ts: string } | undefined>;
  /** Shows on the card what became of the approval. */
  update(approval: Approval): Promise<void>;
  remind(approval: Approval): Promise<void>;
  escalate(approval: Approval): Promise<void>;
}

/** Known to the state machine by this name: the one failure of ours that trying again cannot mend. */
export class ApprovalClosed extends Error {
  override name = 'ApprovalClosed';
}

export interface Holding {
  entryId: string;
  tenant: string;
  runId: string;
  approvalId: string;
  rung: Rung;
  taskToken: string;
  retrying: boolean;
}

export interface Holder extends Mover {
  cards: Cards;
}

/**
 * The state machine reached a rung and waits there with this token. The token is kept first: from then on a decision
 * ends the wait. Then people are told. DynamoDB is the authority; what is closed there is not held.
 */
export async function holdApproval(holder: Holder, holding: Holding): Promise<void> {
  const approval = await keepToken(holder, holding).catch(async (error: unknown) => {
    if (error instanceof ApprovalClosed) await holder.runs.fulfilled(holding.entryId);
    throw error;
  });
  switch (holding.rung) {
    case 'notify':
      return tellFirst(holder, holding, approval);
    case 'remind':
      // Whoever could not be told before is told now, which is reminder enough.
      if (approval.status === 'requested') return tellFirst(holder, holding, approval);
      await climbed(holder, approval, 'approval.reminded', { remindedAt: isoNow(holder.clock) });
      return holder.cards.remind(approval);
    case 'escalate':
      await climbed(holder, approval, 'approval.escalated', { escalatedAt: isoNow(holder.clock) });
      return holder.cards.escalate(approval);
  }
}

function keepToken(holder: Holder, { entryId, taskToken, ...ref }: Holding): Promise<Approval> {
  return change(holder, ref, (approval) => holder.runs.holdApproval(entryId, approval, {}, taskToken));
}

async function tellFirst(holder: Holder, { entryId, taskToken, retrying, ...ref }: Holding, approval: Approval) {
  const card = approval.card ?? (await holder.cards.post(approval, retrying));
  const noted = (now: Approval) => holder.runs.holdApproval(entryId, now, { status: 'notified', card }, taskToken);
  await change(holder, ref, noted).catch(async (error: unknown) => {
    // Decided while the card was being posted: nobody knows of the card but us, so it is ours to show the decision on.
    const closed =
      error instanceof ApprovalClosed && (await holder.runs.approval(ref.tenant, ref.runId, ref.approvalId));
    if (closed) await holder.cards.update({ ...closed, card });
    throw error;
  });
}

async function change(
  { runs }: Holder,
  { tenant, runId, approvalId }: Pick<Holding, 'tenant' | 'runId' | 'approvalId'>,
  write: (approval: Approval) => Promise<boolean>,
): Promise<Approval> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const approval = await runs.approval(tenant, runId, approvalId);
    if (!approval || !isOpen(approval)) throw new ApprovalClosed(`approval ${approvalId} is not open any more`);
    if (await write(approval)) return { ...approval, revision: approval.revision + 1 };
  }
  throw new Error(`approval ${approvalId} is changing too fast`);
}

/** Part of the run's history, and flagged on the approval; it decides nothing. */
async function climbed(
  holder: Holder,
  { tenant, runId, approvalId, stepId }: Approval,
  type: 'approval.reminded' | 'approval.escalated',
  changes: Partial<Approval>,
): Promise<void> {
  await moveRun(holder, { tenant, runId }, async (_state, draft) => {
    const approval = await holder.runs.approval(tenant, runId, approvalId);
    if (!approval || !isOpen(approval)) throw new ApprovalClosed(`approval ${approvalId} is not open any more`);
    if (type === 'approval.reminded' ? approval.remindedAt : approval.escalatedAt) return undefined;
    changeApproval(draft, approval, changes);
    draft.record({ type, step: stepId, approvalId });
    return { holds: [] };
  });
}
