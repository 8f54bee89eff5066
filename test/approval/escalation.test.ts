import { beforeEach, describe, expect, it, vi } from 'vitest';
import { noDigests } from '../../lambdas/approval/digest/digest-store.ts';
import type { DigestMessages } from '../../lambdas/approval/digest/post-digest.ts';
import type { EscalationStage } from '../../lambdas/approval/environment.ts';
import { publishDecision } from '../../lambdas/approval/publish-decision.ts';
import { ApprovalClosed, type Cards, waitForDecision } from '../../lambdas/approval/wait-for-decision.ts';
import { TargetRefused } from '../../lambdas/connectors/target-errors.ts';
import { type StartApproval, startEntryId, startWithReminder } from '../../lambdas/outbox/outbox.ts';
import { type Approval, isOpen } from '../../lambdas/run/approval.ts';
import { QUARANTINE_MS } from '../../lambdas/run/lease.ts';
import { ASSIGN, GovernedWorkshop } from '../worker/governance/governed-workshop.ts';
import { eventTypes } from '../worker/workshop.ts';

/** Cards in memory: records every notification. */
class MemoryCards implements Cards {
  readonly said: string[] = [];
  readonly shown: Approval[] = [];
  whilePosting: () => Promise<unknown> = async () => undefined;
  whileAlerting: () => Promise<unknown> = async () => undefined;
  hasSlack = true;
  /** By an attempt that could not store it. */
  isPosted = false;

  async post(approval: Approval, mayBePosted: boolean) {
    await this.whilePosting();
    if (!this.hasSlack) return undefined;
    this.said.push(mayBePosted ? 'card, after a search' : 'card');
    return { channel: 'C1', ts: approval.approvalId };
  }
  async find(approval: Approval) {
    return this.isPosted ? { channel: 'C1', ts: approval.approvalId } : undefined;
  }
  async update(approval: Approval) {
    this.shown.push(approval);
  }
  async remind() {
    this.said.push('reminder');
  }
  async alert(approval: Approval) {
    await this.whileAlerting();
    this.said.push(isOpen(approval) ? 'alert' : 'alert is over');
  }
}

let shop: GovernedWorkshop;
let cards: MemoryCards;
let approval: Approval;
let message: { tenant: string; runId: string };
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  cards = new MemoryCards();
  ({ message, approval } = await shop.upToGate(ASSIGN()));
  vi.unstubAllGlobals();
});

const now = async () => (await shop.runs.approval('acme', approval.runId, approval.approvalId)) as Approval;
const token = () => shop.runs.taskToken('acme', approval.runId, approval.approvalId);
const outboxKinds = () => [...shop.runs.inside.outbox()].map(({ kind }) => kind);
const hold = (escalationStage: EscalationStage, { taskToken = escalationStage as string, retryCount = 0 } = {}) => {
  const { tenant, runId, approvalId } = approval;
  const entryId = startEntryId(approval);
  return waitForDecision(
    { ...shop.worker, cards },
    { entryId, tenant, runId, approvalId, escalationStage, taskToken, retryCount },
  );
};

describe('the escalation', () => {
  it('notifies, reminds and alerts others, each with the token of its escalation stage, and the history of the run records it', async () => {
    await hold('notify');
    expect(await now()).toMatchObject({ status: 'notified', card: { channel: 'C1' } });
    expect(outboxKinds()).toEqual([]);
    await hold('remind');
    await hold('escalate');
    // Its announcement may have posted the card.
    expect(cards.said).toEqual(['card, after a search', 'reminder', 'alert']);
    expect(await token()).toBe('escalate');
    expect(await now()).toMatchObject({
      status: 'notified',
      remindedAt: expect.any(String),
      escalatedAt: expect.any(String),
    });
    expect(eventTypes(await shop.now(message)).slice(-2)).toEqual(['approval.reminded', 'approval.overdue']);
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
  });

  it('enqueues an overdue approval for the next digest once, which the sweeper sends', async () => {
    await hold('notify');
    await hold('escalate');
    await hold('escalate', { retryCount: 1 });
    const entries = [...shop.runs.inside.outbox()].filter(({ kind }) => kind === 'list_overdue');
    expect(entries).toMatchObject([{ approvalId: approval.approvalId, runId: approval.runId, attempts: 0 }]);
    expect(Date.parse(entries[0]?.dueAt ?? '')).toBe(shop.clock.now() + 60_000);
    expect(shop.outbox.receiveDigests()).toEqual([]);
  });

  it('flags the run from the alert until somebody has decided', async () => {
    const overdue = async () => (await shop.now(message)).run as { approvalOverdueSince?: string };
    await hold('notify');
    await hold('remind');
    expect(await overdue()).not.toHaveProperty('approvalOverdueSince');
    await hold('escalate');
    expect((await overdue()).approvalOverdueSince).toBe((await now()).escalatedAt);
    await shop.say(await now(), 'ana');
    expect((await overdue()).approvalOverdueSince).toBeUndefined();
  });

  it('leaves token and people alone in a stage or try that is older than the one that waits', async () => {
    await hold('escalate', { retryCount: 1 });
    const said = [...cards.said];
    await hold('remind');
    await hold('notify', { retryCount: 900 });
    await hold('escalate', { taskToken: 'first try' });
    expect(await token()).toBe('escalate');
    expect(cards.said).toEqual(said);
    expect(await now()).not.toHaveProperty('remindedAt');
  });

  it('stores the token before it notifies anybody, so that a failure of Slack does not affect the approval', async () => {
    cards.whilePosting = () => Promise.reject(new Error('Slack is down'));
    await expect(hold('notify')).rejects.toThrow('Slack is down');
    expect(await token()).toBe('notify');
    expect((await now()).status).toBe('requested');
    await shop.say(approval, 'ana');
    expect((await now()).status).toBe('approved');
  });

  it('posts the card instead of a reminder, if the first notification failed', async () => {
    await hold('remind');
    expect(cards.said).toEqual(['card, after a search']);
    expect(await now()).toMatchObject({ status: 'notified' });
  });

  it('searches for an existing card on every try but the very first', async () => {
    cards.whilePosting = () => Promise.reject(new Error('no answer'));
    await expect(hold('notify')).rejects.toThrow('no answer');
    cards.whilePosting = async () => undefined;
    await hold('notify', { retryCount: 1 });
    expect(cards.said).toEqual(['card, after a search']);
  });

  it('posts the card with the alert if the first notification failed; if one fails, the other is still sent', async () => {
    cards.whilePosting = () => Promise.reject(new Error('Slack is down'));
    await expect(hold('escalate')).rejects.toThrow('Slack is down');
    expect(cards.said).toEqual(['alert']);
    cards.whilePosting = async () => undefined;
    cards.whileAlerting = () => Promise.reject(new Error('PagerDuty is down'));
    await expect(hold('escalate', { retryCount: 1 })).rejects.toThrow('PagerDuty is down');
    expect(cards.said).toEqual(['alert', 'card, after a search']);
    expect(await now()).toMatchObject({ status: 'notified', escalatedAt: expect.any(String), card: { channel: 'C1' } });
  });

  it.each([
    ['notify', 'remindAt'],
    ['remind', 'slaAt'],
    ['escalate', 'expiresAt'],
  ] as const)('notifies nobody on %s once the next stage is due, and waits for it', async (escalationStage, due) => {
    shop.clock.advance(Date.parse(approval[due]) - shop.clock.now());
    await hold(escalationStage);
    expect(cards.said).toEqual([]);
    expect(await token()).toBe(escalationStage);
    expect((await now()).escalatedAt).toBeUndefined();
  });

  it('resolves an alert that came after the decision', async () => {
    await hold('notify');
    cards.whileAlerting = async () => {
      cards.whileAlerting = async () => undefined;
      await shop.say(approval, 'ana');
    };
    await expect(hold('escalate')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said).toEqual(['card, after a search', 'alert', 'alert is over']);
  });

  it('resolves an alert whose sender died before it could check again', async () => {
    await hold('notify');
    cards.whileAlerting = () => Promise.reject(new Error('timed out, after it was sent'));
    await expect(hold('escalate')).rejects.toThrow('timed out');
    cards.whileAlerting = async () => undefined;
    await shop.say(approval, 'ana');
    await expect(hold('escalate', { retryCount: 1 })).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said.at(-1)).toBe('alert is over');
  });

  it('continues without Slack', async () => {
    cards.hasSlack = false;
    await hold('notify');
    expect(await now()).toMatchObject({ status: 'notified' });
    expect(await now()).not.toHaveProperty('card.ts');
  });

  it('does not wait for a decided approval, and removes its outbox entry', async () => {
    await shop.say(approval, 'ana');
    await expect(hold('notify')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said).toEqual([]);
    expect(await token()).toBeUndefined();
    expect(outboxKinds()).toEqual(['follow_approval']);
  });

  it('shows a decision that was made while the card was posted on that card', async () => {
    cards.whilePosting = () => shop.say(approval, 'ana');
    await expect(hold('notify')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.shown).toMatchObject([{ status: 'approved', card: { ts: approval.approvalId } }]);
  });

  it('shows the decision on a card that was posted before the decision, and that no row names', async () => {
    cards.isPosted = true;
    await shop.say(approval, 'ana');
    await expect(hold('notify')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said).toEqual([]);
    expect(cards.shown).toMatchObject([{ status: 'approved', card: { ts: approval.approvalId } }]);
    expect(outboxKinds()).toEqual(['follow_approval']);
  });

  it('keeps its outbox entry until that card shows the decision', async () => {
    cards.isPosted = true;
    await shop.say(approval, 'ana');
    cards.update = () => Promise.reject(new Error('Slack is down'));
    await expect(hold('notify')).rejects.toThrow('Slack is down');
    expect(outboxKinds()).toEqual(['start_approval', 'follow_approval']);
  });

  it('shows an edit that was made while the card was posted', async () => {
    cards.whilePosting = () => shop.say(approval, 'ana', { kind: 'edit', fields: { category: 'database' } });
    await hold('notify');
    expect(cards.shown).toMatchObject([{ status: 'notified', edits: [{ person: 'ana' }] }]);
  });

  it('counts a vote that comes while the token is stored', async () => {
    cards.whilePosting = () => shop.say(approval, 'ana', { kind: 'edit', fields: { category: 'database' } });
    await hold('notify');
    expect(await now()).toMatchObject({ status: 'notified', edits: [{ person: 'ana' }], card: { channel: 'C1' } });
  });
});

describe('the publication of a decision', () => {
  const completed: [string, unknown][] = [];
  const tokens = { complete: async (...args: [string, unknown]) => void completed.push(args) };
  let asked: ReturnType<typeof shop.outbox.receiveFollows>[number] | undefined;
  const follow = async (differing: Partial<Cards> = {}) => {
    [asked = asked] = shop.outbox.receiveFollows();
    if (!asked) throw new Error('nothing is to follow');
    const watched = Object.assign(cards, differing);
    const { runs, clock, log } = shop;
    await publishDecision(
      { runs, digests: runs.digests, messages: digests, cards: watched, tokens, clock, log },
      asked,
    );
  };
  const closed: string[] = [];
  let hasSlack = true;
  const digests: DigestMessages = {
    reaches: async () => hasSlack,
    post: () => Promise.reject(new Error('publishing a decision posts no digest')),
    find: () => Promise.reject(new Error('publishing a decision searches for no digest')),
    close: async (_tenant, { ts }, approvals) => void closed.push(`${ts}: ${approvals.map(({ status }) => status)}`),
  };
  beforeEach(() => {
    completed.length = 0;
    closed.length = 0;
    asked = undefined;
    hasSlack = true;
  });

  it('shows on the digest that its last approval is closed', async () => {
    await hold('notify');
    await hold('escalate');
    shop.outbox.receiveFollows();
    const posted = { number: 1, at: '', message: { channel: 'C1', ts: '7' }, repeatEntryId: 'repeat', repeatAt: '' };
    const listed = [approval.approvalId];
    await shop.runs.digests.save(noDigests('acme', approval.channel), { number: 1, listed, posted });
    await shop.say(await now(), 'ana');
    await follow();
    expect(closed).toEqual(['7: approved']);
  });

  it('wakes the state machine with the decision, shows it, and removes its outbox entry', async () => {
    await hold('notify');
    await shop.say(approval, 'ana');
    await follow();
    expect(completed).toEqual([['notify', { approvalId: approval.approvalId, status: 'approved' }]]);
    expect(cards.shown).toMatchObject([{ status: 'approved' }]);
    expect(outboxKinds()).toEqual([]);
  });

  it('gives up the execution of an approval that was decided before its reminder', async () => {
    const [entry] = shop.runs.inside.outbox();
    const announced = { ...entry, attempts: 1 } as StartApproval;
    const card = { channel: 'C1', ts: approval.approvalId };
    await shop.runs.bumpOutbox(entry as StartApproval, announced.dueAt);
    await shop.runs.storeCard(announced, approval, { status: 'notified', card }, startWithReminder(announced));
    await shop.say(await now(), 'ana');
    await follow();
    expect(completed).toEqual([]);
    expect(outboxKinds()).toEqual([]);
  });

  it('leaves the outbox entry to who posts the card, if they have not stored it', async () => {
    const [entry] = shop.runs.inside.outbox();
    await shop.runs.bumpOutbox(entry as StartApproval, (entry as StartApproval).dueAt);
    await shop.say(approval, 'ana');
    await follow();
    expect(outboxKinds()).toContain('start_approval');
  });

  it('shows the decision on a card that no row names, after everybody who may post it has ended', async () => {
    await shop.say(approval, 'ana');
    await follow();
    expect(cards.shown.filter(({ card }) => card)).toEqual([]);
    expect(outboxKinds()).toContain('follow_approval');
    cards.isPosted = true;
    shop.clock.advance(QUARANTINE_MS);
    await follow();
    expect(cards.shown.at(-1)).toMatchObject({ status: 'approved', card: { channel: 'C1', ts: approval.approvalId } });
    expect(outboxKinds()).not.toContain('follow_approval');
  });

  it('ends without a card if Slack shows none, or refuses the search for good', async () => {
    await shop.say(approval, 'ana');
    shop.clock.advance(QUARANTINE_MS);
    const archived = new TargetRefused('channel_not_found', { retryable: false });
    await follow({ find: () => Promise.reject(archived) });
    expect(outboxKinds()).not.toContain('follow_approval');
  });

  it('searches for no card in a tenant without Slack', async () => {
    hasSlack = false;
    await shop.say(approval, 'ana');
    await follow({ find: () => Promise.reject(new Error('there is no Slack')) });
    expect(outboxKinds()).not.toContain('follow_approval');
  });

  it('only updates the card while the approval is open', async () => {
    await hold('notify');
    await shop.say(approval, 'ana', { kind: 'edit', fields: { category: 'database' } });
    await follow();
    expect(completed).toEqual([]);
    expect(cards.shown).toMatchObject([{ edits: [{ person: 'ana' }] }]);
  });

  it('keeps its outbox entry until all of it is done', async () => {
    await hold('notify');
    await shop.say(approval, 'ana');
    await expect(follow({ update: () => Promise.reject(new Error('Slack is down')) })).rejects.toThrow('Slack is down');
    expect(completed).toHaveLength(1);
    expect(outboxKinds()).toEqual(['follow_approval']);
  });
});
