import { finalRefusal } from '../connectors/target-errors.ts';
import { LOGGED } from '../entry/environment.ts';
import { isoNow, type Log } from '../entry/ports.ts';
import { isAnnouncedFirst, newOutboxEntry } from '../outbox/outbox.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import type { RunStore, WaitToken } from '../run/run-store.ts';
import { changeRun } from '../run-changes/change-run.ts';
import type { RunChanger } from '../run-changes/run-changer.ts';
import { ESCALATION_STAGES, type EscalationStage } from './environment.ts';

/** Others may vote while the token is stored; it is stored again with their votes. */
const TRIES_MAX = 8;

/** Notifies people: a card, messages about it, and an alert. `mayBePosted`: search for the message of an earlier try. */
export interface Cards {
  /** Nothing where the tenant has no Slack. */
  post(approval: Approval, mayBePosted: boolean): Promise<{ channel: string; ts: string } | undefined>;
  /** The card of an earlier try, if Slack shows it. */
  find(approval: Approval): Promise<{ channel: string; ts: string } | undefined>;
  /** Shows the current status of the approval. */
  update(approval: Approval): Promise<void>;
  remind(approval: Approval, mayBePosted: boolean): Promise<void>;
  /** Triggers the alert of an open approval, and resolves the alert of a closed one. */
  alert(approval: Approval): Promise<void>;
}

/** The state machine (lib/approval-flow.ts) knows this name: it does not retry this error. */
export class ApprovalClosed extends Error {
  override name = 'ApprovalClosed';
}

export interface Waiting {
  entryId: string;
  tenant: string;
  runId: string;
  approvalId: string;
  escalationStage: EscalationStage;
  taskToken: string;
  /** How often the state machine has repeated this stage. */
  retryCount: number;
}

export interface Waiter extends RunChanger {
  cards: Cards;
}

/** More than the state machine retries a stage. */
const RETRIES_OF_A_STAGE_MAX = 10_000;

/** When the next stage begins. After that, this stage no longer notifies anyone. */
const NEXT_STAGE_AT = { notify: 'remindAt', remind: 'slaAt', escalate: 'expiresAt' } as const;

/**
 * The state machine has reached an escalation stage and waits with a task token. As soon as the token is stored, a decision
 * ends the wait. If the approval is closed before that, this function throws ApprovalClosed, and the execution ends.
 */
export async function waitForDecision(waiter: Waiter, waiting: Waiting): Promise<void> {
  try {
    if (waiting.escalationStage === 'notify' && (await announce(waiter, waiting))) return;
    const approval = await storeToken(waiter, waiting);
    // Functions of several stages may run at the same time, if this one is slow or the clocks differ.
    if (!approval) return waiter.log.warn('a later escalation stage waits already', { approvalId: waiting.approvalId });
    const nextStageAt = approval[NEXT_STAGE_AT[waiting.escalationStage]];
    if (isoNow(waiter.clock) < nextStageAt) await notify(waiter, waiting, approval);
  } catch (error) {
    if (error instanceof ApprovalClosed) await stopWaiting(waiter, waiting);
    throw error;
  }
}

/**
 * Posts the card, and stores it together with the token: one write instead of two. False if there is nothing to announce. If
 * the card cannot be posted, the token is stored without it, because the execution waits and people may decide elsewhere.
 */
async function announce(waiter: Waiter, waiting: Waiting): Promise<boolean> {
  const approval = await readOpen(waiter, waiting);
  if (approval.status !== 'requested' || isoNow(waiter.clock) >= approval[NEXT_STAGE_AT.notify]) return false;
  try {
    await postCard(waiter, waiting, approval, tokenOf(waiting));
  } catch (error) {
    if (!(error instanceof ApprovalClosed)) await storeToken(waiter, waiting);
    throw error;
  }
  return true;
}

async function notify(waiter: Waiter, waiting: Waiting, approval: Approval): Promise<void> {
  switch (waiting.escalationStage) {
    case 'notify':
      return postCard(waiter, waiting, approval);
    case 'remind':
      // If the first notification failed, send it now instead of a reminder.
      if (approval.status === 'requested') return postCard(waiter, waiting, approval);
      await recordStage(waiter, approval, 'approval.reminded');
      return waiter.cards.remind(approval, waiting.retryCount > 0);
    case 'escalate': {
      await recordStage(waiter, approval, 'approval.overdue');
      const overdue = await readOpen(waiter, waiting);
      // If one of the alert and the card fails, the other is still sent. In Slack, a digest lists the approval.
      try {
        await waiter.cards.alert(overdue);
      } finally {
        if (overdue.status === 'requested') await postCard(waiter, waiting, overdue);
      }
      // A decision may have been published before the alert existed.
      await readOpen(waiter, waiting);
    }
  }
}

/**
 * No execution needs to start any more, and an alert that was triggered while the approval closed is resolved. If a try, this
 * one included, has posted the card and could not store it, the card shows the decision.
 */
async function stopWaiting(
  { runs, cards, log }: Waiter,
  { entryId, tenant, runId, approvalId }: Waiting,
): Promise<void> {
  const closed = await runs.approval(tenant, runId, approvalId);
  const lost = closed && !closed.card ? await cards.find(closed).catch(unlessRefused(log, closed)) : undefined;
  if (closed && lost) await cards.update({ ...closed, card: lost });
  await runs.completeOutboxEntry(entryId);
  if (closed?.escalatedAt !== undefined) await cards.alert(closed);
}

/** The channel is archived, or the app lost its access. Retries would not help, and nothing depends on the card. */
export const unlessRefused =
  (log: Log, { tenant, approvalId }: Approval) =>
  (error: unknown): undefined => {
    log.error(LOGGED.cardNotUpdated, { tenant, approvalId, error: finalRefusal(error) });
  };

/** An earlier try of this stage, an earlier stage or the announcement may have posted the card. */
const mayBePosted = ({ retryCount, escalationStage }: Waiting, approval: Approval): boolean =>
  retryCount > 0 || escalationStage !== 'notify' || isAnnouncedFirst(approval);

/** Nothing if the execution waits with a later token. */
function storeToken(waiter: Waiter, waiting: Waiting): Promise<Approval | undefined> {
  const { entryId, ...ref } = waiting;
  return change(waiter, ref, (approval) => waiter.runs.storeTaskToken(entryId, approval, {}, tokenOf(waiting)));
}

const tokenOf = ({ taskToken, escalationStage, retryCount }: Waiting): WaitToken => ({
  taskToken,
  waitNumber: ESCALATION_STAGES.indexOf(escalationStage) * RETRIES_OF_A_STAGE_MAX + retryCount,
});

async function postCard(waiter: Waiter, waiting: Waiting, approval: Approval, token?: WaitToken): Promise<void> {
  const { entryId, ...ref } = waiting;
  const card = approval.card ?? (await waiter.cards.post(approval, mayBePosted(waiting, approval)));
  const note = async () => {
    const store = (now: Approval, stored?: WaitToken) =>
      waiter.runs.storeTaskToken(entryId, now, { status: 'notified', card }, stored);
    // If a later stage waits already, its token stays.
    const stored =
      (await change(waiter, ref, (now) => store(now, token))) ?? (await change(waiter, ref, (now) => store(now)));
    // The card shows the approval as it was before an edit or a vote; so may a card that an earlier try has posted.
    const isFound = approval.revision > 1 && mayBePosted(waiting, approval);
    if (stored && (isFound || stored.revision > approval.revision + 1)) {
      await waiter.cards.update({ ...stored, status: 'notified', card });
    }
  };
  await note().catch(async (error: unknown) => {
    // Decided while the card was posted: no row names the card, so the decision must be shown on it here.
    const closed =
      error instanceof ApprovalClosed && (await waiter.runs.approval(ref.tenant, ref.runId, ref.approvalId));
    if (closed) await waiter.cards.update({ ...closed, card });
    throw error;
  });
}

type ApprovalRef = Pick<Waiting, 'tenant' | 'runId' | 'approvalId'>;

async function readOpen({ runs }: Waiter, { tenant, runId, approvalId }: ApprovalRef): Promise<Approval> {
  const approval = await runs.approval(tenant, runId, approvalId);
  if (approval && isOpen(approval)) return approval;
  throw new ApprovalClosed(`approval ${approvalId} is no longer open`);
}

async function change(
  waiter: Waiter,
  ref: ApprovalRef,
  write: (approval: Approval) => ReturnType<RunStore['storeTaskToken']>,
): Promise<Approval | undefined> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const approval = await readOpen(waiter, ref);
    const result = await write(approval);
    if (result === 'stored') return { ...approval, revision: approval.revision + 1 };
    if (result === 'has_later_token') return undefined;
  }
  throw new Error(`approval ${ref.approvalId} is changing too fast`);
}

/** Records the stage in the history of the run and on the approval. An overdue approval also flags its run, and is listed. */
async function recordStage(
  waiter: Waiter,
  { tenant, runId, approvalId, stepId }: Approval,
  type: 'approval.reminded' | 'approval.overdue',
): Promise<void> {
  await changeRun(waiter, { tenant, runId }, async (_state, draft) => {
    const approval = await readOpen(waiter, { tenant, runId, approvalId });
    const recordedAt = type === 'approval.reminded' ? 'remindedAt' : 'escalatedAt';
    if (approval[recordedAt]) return undefined;
    draft.changeApproval(approval, { [recordedAt]: draft.at });
    draft.record({ type, step: stepId, approvalId });
    if (type === 'approval.overdue') {
      draft.note({ approvalOverdueSince: draft.at });
      draft.enqueue(newOutboxEntry({ kind: 'list_overdue', tenant, runId, approvalId }, draft.at));
    }
    return {};
  });
}
