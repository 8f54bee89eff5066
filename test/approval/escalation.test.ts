import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { EscalationStage } from '../../lambdas/approval/environment.ts';
import { publishDecision } from '../../lambdas/approval/publish-decision.ts';
import { ApprovalClosed, type Cards, waitForDecision } from '../../lambdas/approval/wait-for-decision.ts';
import { type Approval, isOpen } from '../../lambdas/run/approval.ts';
import { ASSIGN, GovernedWorkshop } from '../worker/governed-workshop.ts';
import { eventTypes } from '../worker/workshop.ts';

/** A channel that remembers what was said in it. */
class MemoryCards implements Cards {
  readonly said: string[] = [];
  readonly shown: Approval[] = [];
  whilePosting: () => Promise<unknown> = async () => undefined;
  whileAlerting: () => Promise<unknown> = async () => undefined;
  hasSlack = true;

  async post(approval: Approval, mayHaveTold: boolean) {
    await this.whilePosting();
    if (!this.hasSlack) return undefined;
    this.said.push(mayHaveTold ? 'card, after looking for it' : 'card');
    return { channel: 'C1', ts: approval.approvalId };
  }
  async update(approval: Approval) {
    this.shown.push(approval);
  }
  async remind() {
    this.said.push('reminder');
  }
  async escalate() {
    this.said.push('escalation');
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
const promisesLeft = () => [...shop.runs.inside.outbox()].map(({ kind }) => kind);
const hold = (escalationStage: EscalationStage, { taskToken = escalationStage as string, retrying = false } = {}) => {
  const { tenant, runId, approvalId } = approval;
  const [{ entryId } = { entryId: '' }] = shop.outbox.startedApprovals();
  return waitForDecision(
    { ...shop.worker, cards },
    { entryId, tenant, runId, approvalId, escalationStage, taskToken, retrying },
  );
};

describe('the escalation', () => {
  it('asks, reminds and calls others, each with the token of its escalation stage; the run’s history says so', async () => {
    await hold('notify');
    expect(await now()).toMatchObject({ status: 'notified', card: { channel: 'C1' } });
    expect(promisesLeft()).toEqual([]);
    await hold('remind');
    await hold('escalate');
    expect(cards.said).toEqual(['card', 'reminder', 'alert', 'escalation']);
    expect(await token()).toBe('escalate');
    expect(await now()).toMatchObject({
      status: 'notified',
      remindedAt: expect.any(String),
      escalatedAt: expect.any(String),
    });
    expect(eventTypes(await shop.now(message)).slice(-2)).toEqual(['approval.reminded', 'approval.overdue']);
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
  });

  it('flags the run from the call for others until somebody has decided', async () => {
    const overdue = async () => (await shop.now(message)).run as { approvalOverdueSince?: string };
    await hold('notify');
    await hold('remind');
    expect(await overdue()).not.toHaveProperty('approvalOverdueSince');
    await hold('escalate');
    expect((await overdue()).approvalOverdueSince).toBe((await now()).escalatedAt);
    await shop.say(await now(), 'ana');
    expect((await overdue()).approvalOverdueSince).toBeUndefined();
  });

  it('keeps the token before it tells anybody, so that Slack’s troubles are not the approval’s', async () => {
    cards.whilePosting = () => Promise.reject(new Error('Slack is down'));
    await expect(hold('notify')).rejects.toThrow('Slack is down');
    expect(await token()).toBe('notify');
    expect((await now()).status).toBe('requested');
    await shop.say(approval, 'ana');
    expect((await now()).status).toBe('approved');
  });

  it('tells whoever could not be told before, instead of reminding them', async () => {
    await hold('remind');
    expect(cards.said).toEqual(['card, after looking for it']);
    expect(await now()).toMatchObject({ status: 'notified' });
  });

  it('looks for a card that may be there on every try but the very first', async () => {
    cards.whilePosting = () => Promise.reject(new Error('no answer'));
    await expect(hold('notify')).rejects.toThrow('no answer');
    cards.whilePosting = async () => undefined;
    await hold('notify', { retrying: true });
    expect(cards.said).toEqual(['card, after looking for it']);
  });

  it('posts the card with the alert if nobody could be told before; each goes on without the other', async () => {
    cards.whilePosting = () => Promise.reject(new Error('Slack is down'));
    await expect(hold('escalate')).rejects.toThrow('Slack is down');
    expect(cards.said).toEqual(['alert']);
    cards.whilePosting = async () => undefined;
    cards.whileAlerting = () => Promise.reject(new Error('PagerDuty is down'));
    await expect(hold('escalate', { retrying: true })).rejects.toThrow('PagerDuty is down');
    expect(cards.said).toEqual(['alert', 'card, after looking for it']);
    expect(await now()).toMatchObject({ status: 'notified', escalatedAt: expect.any(String), card: { channel: 'C1' } });
  });

  it.each([
    ['notify', 'remindAt'],
    ['remind', 'slaAt'],
    ['escalate', 'expiresAt'],
  ] as const)('tells nobody on %s once the next stage is due, and waits for it', async (escalationStage, due) => {
    shop.clock.advance(Date.parse(approval[due]) - shop.clock.now());
    await hold(escalationStage);
    expect(cards.said).toEqual([]);
    expect(await token()).toBe(escalationStage);
    expect((await now()).escalatedAt).toBeUndefined();
  });

  it('calls off an alert that came after the decision', async () => {
    await hold('notify');
    cards.whileAlerting = async () => {
      cards.whileAlerting = async () => undefined;
      await shop.say(approval, 'ana');
    };
    await expect(hold('escalate')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said).toEqual(['card', 'alert', 'escalation', 'alert is over']);
  });

  it('calls off an alert whose sender died before it could look again', async () => {
    await hold('notify');
    cards.whileAlerting = () => Promise.reject(new Error('timed out, after it was sent'));
    await expect(hold('escalate')).rejects.toThrow('timed out');
    cards.whileAlerting = async () => undefined;
    await shop.say(approval, 'ana');
    await expect(hold('escalate', { retrying: true })).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said.at(-1)).toBe('alert is over');
  });

  it('goes on where there is no Slack', async () => {
    cards.hasSlack = false;
    await hold('notify');
    expect(await now()).toMatchObject({ status: 'notified' });
    expect(await now()).not.toHaveProperty('card.ts');
  });

  it('does not hold what is decided, and has nothing left to start', async () => {
    await shop.say(approval, 'ana');
    await expect(hold('notify')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.said).toEqual([]);
    expect(await token()).toBeUndefined();
    expect(promisesLeft()).toEqual(['follow_approval']);
  });

  it('shows a decision made while the card was being posted on that very card', async () => {
    cards.whilePosting = () => shop.say(approval, 'ana');
    await expect(hold('notify')).rejects.toBeInstanceOf(ApprovalClosed);
    expect(cards.shown).toMatchObject([{ status: 'approved', card: { ts: approval.approvalId } }]);
  });

  it('counts a vote that comes while it is being held', async () => {
    cards.whilePosting = () => shop.say(approval, 'ana', { kind: 'edit', fields: { assignment_group: 'database' } });
    await hold('notify');
    expect(await now()).toMatchObject({ status: 'notified', edits: [{ person: 'ana' }], card: { channel: 'C1' } });
  });
});

describe('what follows from a decision', () => {
  const answered: [string, unknown][] = [];
  const tokens = { answer: async (...args: [string, unknown]) => void answered.push(args) };
  const follow = async (differing: Partial<Cards> = {}) => {
    const [asked] = shop.outbox.receiveFollows();
    if (!asked) throw new Error('nothing is to follow');
    const watched = Object.assign(cards, differing);
    await publishDecision({ runs: shop.runs, cards: watched, tokens, log: shop.log }, asked);
  };
  beforeEach(() => {
    answered.length = 0;
  });

  it('wakes the state machine with what was decided, shows it, and is done', async () => {
    await hold('notify');
    await shop.say(approval, 'ana');
    await follow();
    expect(answered).toEqual([['notify', { approvalId: approval.approvalId, status: 'approved' }]]);
    expect(cards.shown).toMatchObject([{ status: 'approved' }]);
    expect(promisesLeft()).toEqual([]);
  });

  it('is only shown while it is open', async () => {
    await hold('notify');
    await shop.say(approval, 'ana', { kind: 'edit', fields: { assignment_group: 'database' } });
    await follow();
    expect(answered).toEqual([]);
    expect(cards.shown).toMatchObject([{ edits: [{ person: 'ana' }] }]);
  });

  it('stays promised until all of it is done', async () => {
    await hold('notify');
    await shop.say(approval, 'ana');
    await expect(follow({ update: () => Promise.reject(new Error('Slack is down')) })).rejects.toThrow('Slack is down');
    expect(answered).toHaveLength(1);
    expect(promisesLeft()).toEqual(['follow_approval']);
  });
});
