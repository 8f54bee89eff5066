import { isoNow } from '../entry/ports.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import { changeRun } from '../run-changes/change-run.ts';
import type { RunChanger } from '../run-changes/run-changer.ts';
import type { EscalationStage } from './environment.ts';

/** Others may vote while the token is being kept; it is kept beside what they left. */
const TRIES_MAX = 8;

/** Where people are told: a card, what is said about it, and an alert. What an earlier try `mayHaveTold` is looked for. */
export interface Cards {
  /** None where the tenant has no Slack. */
  post(approval: Approval, mayHaveTold: boolean): Promise<{ channel: string; ts: string } | undefined>;
  /** Shows what became of the approval. */
  update(approval: Approval): Promise<void>;
  remind(approval: Approval, mayHaveTold: boolean): Promise<void>;
  escalate(approval: Approval, mayHaveTold: boolean): Promise<void>;
  /** Calls others to an open approval, and off from a closed one. */
  alert(approval: Approval): Promise<void>;
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
  escalationStage: EscalationStage;
  taskToken: string;
  retrying: boolean;
}

export interface Holder extends RunChanger {
  cards: Cards;
}

/** When the next rung is due, which is to tell people then. */
const OVER_AT = { notify: 'remindAt', remind: 'slaAt', escalate: 'expiresAt' } as const;

/**
 * The state machine reached a rung and waits there with this token. The token is kept first: from then on a decision
 * ends the wait. Then people are told. DynamoDB is the authority; what is closed there is not held.
 */
export async function waitForDecision(holder: Holder, holding: Holding): Promise<void> {
  try {
    const approval = await keepToken(holder, holding);
    if (isoNow(holder.clock) < approval[OVER_AT[holding.escalationStage]]) await tell(holder, holding, approval);
  } catch (error) {
    if (error instanceof ApprovalClosed) await letGo(holder, holding);
    throw error;
  }
}

async function tell(holder: Holder, holding: Holding, approval: Approval): Promise<void> {
  switch (holding.escalationStage) {
    case 'notify':
      return tellFirst(holder, holding, approval);
    case 'remind':
      // Whoever could not be told before is told now, which is reminder enough.
      if (approval.status === 'requested') return tellFirst(holder, holding, approval);
      await climbed(holder, approval, 'approval.reminded');
      return holder.cards.remind(approval, holding.retrying);
    case 'escalate': {
      await climbed(holder, approval, 'approval.overdue');
      const overdue = await stillOpen(holder, holding);
      // Neither waits for the other: where one is down, the other is told all the same.
      try {
        await holder.cards.alert(overdue);
      } finally {
        if (overdue.status === 'requested') await tellFirst(holder, holding, overdue);
        else await holder.cards.escalate(overdue, holding.retrying);
      }
      // A decision may have been shown before the alert was there.
      await stillOpen(holder, holding);
    }
  }
}

/** There is nothing left to start, and whoever was called while it closed is called off. */
async function letGo({ runs, cards }: Holder, { entryId, tenant, runId, approvalId }: Holding): Promise<void> {
  await runs.fulfilled(entryId);
  const closed = await runs.approval(tenant, runId, approvalId);
  if (closed?.escalatedAt !== undefined) await cards.alert(closed);
}

function keepToken(holder: Holder, { entryId, taskToken, ...ref }: Holding): Promise<Approval> {
  return change(holder, ref, (approval) => holder.runs.storeTaskToken(entryId, approval, {}, taskToken));
}

async function tellFirst(holder: Holder, holding: Holding, approval: Approval): Promise<void> {
  const { entryId, taskToken, escalationStage, retrying, ...ref } = holding;
  const card = approval.card ?? (await holder.cards.post(approval, retrying || escalationStage !== 'notify'));
  const noted = (now: Approval) => holder.runs.storeTaskToken(entryId, now, { status: 'notified', card }, taskToken);
  await change(holder, ref, noted).catch(async (error: unknown) => {
    // Decided while the card was being posted: nobody knows of the card but us, so it is ours to show the decision on.
    const closed =
      error instanceof ApprovalClosed && (await holder.runs.approval(ref.tenant, ref.runId, ref.approvalId));
    if (closed) await holder.cards.update({ ...closed, card });
    throw error;
  });
}

type Held = Pick<Holding, 'tenant' | 'runId' | 'approvalId'>;

async function stillOpen({ runs }: Holder, { tenant, runId, approvalId }: Held): Promise<Approval> {
  const approval = await runs.approval(tenant, runId, approvalId);
  if (approval && isOpen(approval)) return approval;
  throw new ApprovalClosed(`approval ${approvalId} is not open any more`);
}

async function change(holder: Holder, held: Held, write: (approval: Approval) => Promise<boolean>): Promise<Approval> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const approval = await stillOpen(holder, held);
    if (await write(approval)) return { ...approval, revision: approval.revision + 1 };
  }
  throw new Error(`approval ${held.approvalId} is changing too fast`);
}

/** Part of the run's history, and flagged on the approval and, if others are called, on the run; it decides nothing. */
async function climbed(
  holder: Holder,
  { tenant, runId, approvalId, stepId }: Approval,
  type: 'approval.reminded' | 'approval.overdue',
): Promise<void> {
  await changeRun(holder, { tenant, runId }, async (_state, draft) => {
    const approval = await stillOpen(holder, { tenant, runId, approvalId });
    const climbedAt = type === 'approval.reminded' ? 'remindedAt' : 'escalatedAt';
    if (approval[climbedAt]) return undefined;
    draft.changeApproval(approval, { [climbedAt]: draft.at });
    draft.record({ type, step: stepId, approvalId });
    if (type === 'approval.overdue') draft.note({ approvalOverdueSince: draft.at });
    return {};
  });
}
