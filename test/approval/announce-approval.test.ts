import { beforeEach, describe, expect, it, vi } from 'vitest';
import { announceApproval } from '../../lambdas/approval/announce-approval.ts';
import type { Cards } from '../../lambdas/approval/wait-for-decision.ts';
import { allowedMs } from '../../lambdas/connectors/attempt-deadline.ts';
import { TargetRefused } from '../../lambdas/connectors/target-errors.ts';
import { isAnnouncedFirst, type StartApproval } from '../../lambdas/outbox/outbox.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { ASSIGN, GovernedWorkshop } from '../worker/governance/governed-workshop.ts';

let shop: GovernedWorkshop;
let approval: Approval;
let entry: StartApproval;
let posted: string[];
let shown: Approval[];
let whilePosting: () => Promise<unknown>;

const cards: Cards = {
  async post({ approvalId, revision }, mayBePosted) {
    allowedMs({ system: 'Slack', writes: true, timeoutMs: 10_000 });
    posted.push(`revision ${revision}${mayBePosted ? ', after a search' : ''}`);
    await whilePosting();
    return { channel: 'C1', ts: approvalId };
  },
  find: () => Promise.reject(new Error('an announcement searches for no card')),
  update: async (approval) => void shown.push(approval),
  remind: () => Promise.reject(new Error('an announcement reminds nobody')),
  alert: () => Promise.reject(new Error('an announcement alerts nobody')),
};

beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  ({ approval } = await shop.upToGate(ASSIGN()));
  vi.unstubAllGlobals();
  [entry] = shop.outbox.receiveAnnouncements() as [StartApproval];
  posted = [];
  shown = [];
  whilePosting = async () => undefined;
});

const now = async () => (await shop.runs.approval('acme', approval.runId, approval.approvalId)) as Approval;
const pause = { random: () => 0, sleep: async (ms: number) => void shop.clock.advance(ms) };
const announce = () => announceApproval({ ...shop.worker, cards, pause }, entry);
const entries = () => [...shop.runs.inside.outbox()].filter(({ kind }) => kind === 'start_approval');
const edit = () => shop.say(approval, 'ana', { kind: 'edit', fields: { category: 'database' } });

describe('the announcement of an approval', () => {
  it('posts the card and stores it, and the execution starts when people are to be reminded', async () => {
    await announce();
    expect(posted).toEqual(['revision 1']);
    expect(await now()).toMatchObject({ status: 'notified', card: { channel: 'C1', ts: approval.approvalId } });
    const { announce: _posted, ...start } = entry;
    expect(entries()).toEqual([{ ...start, attempts: 1, dueAt: approval.remindAt }]);
    expect(shop.outbox.startedApprovals()).toEqual([]);
  });

  it('posts one card if it is invoked twice, at once or later', async () => {
    await Promise.all([announce(), announce()]);
    await announce();
    expect(posted).toHaveLength(1);
    expect(entries()).toHaveLength(1);
  });

  it('moves the time at which the sweeper starts the execution, if it is invoked late', async () => {
    shop.clock.advance(Date.parse(entry.dueAt) - shop.clock.now() - 24_999);
    whilePosting = async () => {
      expect(entries()).toMatchObject([{ attempts: 1, dueAt: new Date(shop.clock.now() + 30_000).toISOString() }]);
    };
    await announce();
    expect(posted).toHaveLength(1);
    expect(entries()).toMatchObject([{ dueAt: approval.remindAt }]);
  });

  it('posts nothing if its time is up before the request', async () => {
    const slow = vi.spyOn(shop.runs, 'approval').mockImplementationOnce(async () => {
      shop.clock.advance(11_000);
      return approval;
    });
    await announce();
    slow.mockRestore();
    expect(posted).toEqual([]);
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('posts nothing after the sweeper has sent the entry again', async () => {
    await shop.runs.bumpOutbox(entry, entry.dueAt);
    await announce();
    expect(posted).toEqual([]);
  });

  it('leaves its outbox entry due if Slack refuses the card', async () => {
    whilePosting = () => Promise.reject(new TargetRefused('Slack is down', { retryable: true }));
    await announce();
    expect(await now()).toEqual(approval);
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('posts the card after the pause that Slack asks for, if it then still arrives in time', async () => {
    whilePosting = async () => {
      if (posted.length < 3) throw new TargetRefused('slow down', { retryable: true, retryAfterMs: 1_000 });
    };
    const before = shop.clock.now();
    await announce();
    expect(posted).toHaveLength(3);
    expect(shop.clock.now() - before).toBe(2_000);
    expect(await now()).toMatchObject({ status: 'notified' });
  });

  it('leaves the card to the execution after two pauses, because each occupies a slot of the account', async () => {
    whilePosting = () => Promise.reject(new TargetRefused('slow down', { retryable: true, retryAfterMs: 1_000 }));
    await announce();
    expect(posted).toHaveLength(3);
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('leaves the card to the execution if Slack asks for a longer pause', async () => {
    whilePosting = () => Promise.reject(new TargetRefused('slow down', { retryable: true, retryAfterMs: 60_000 }));
    await announce();
    expect(posted).toHaveLength(1);
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('keeps its outbox entry due if an edit cannot be shown on the card', async () => {
    whilePosting = edit;
    const update = vi
      .spyOn(cards, 'update')
      .mockRejectedValueOnce(new TargetRefused('slow down', { retryable: true, retryAfterMs: 60_000 }));
    await announce();
    update.mockRestore();
    expect(await now()).toMatchObject({ status: 'requested', edits: [{ person: 'ana' }] });
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('leaves its outbox entry due if the function ends after the card is posted', async () => {
    whilePosting = () => Promise.reject(new Error('the function was ended'));
    await expect(announce()).rejects.toThrow('the function was ended');
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('leaves the card to the execution if the sweeper has started it meanwhile', async () => {
    whilePosting = () => shop.runs.bumpOutbox({ ...entry, attempts: 1 }, approval.remindAt);
    await announce();
    expect(await now()).toEqual(approval);
    expect(entries()).toEqual([{ ...entry, attempts: 2, dueAt: approval.remindAt }]);
  });

  it('posts nothing for an approval that is closed, and removes its outbox entry', async () => {
    await shop.say(approval, 'ana');
    await announce();
    expect(posted).toEqual([]);
    expect(entries()).toEqual([]);
  });

  it('shows a decision on the card that was posted meanwhile, and removes its outbox entry', async () => {
    whilePosting = () => shop.say(approval, 'ana');
    await announce();
    expect(shown).toMatchObject([{ status: 'approved', card: { ts: approval.approvalId } }]);
    expect(entries()).toEqual([]);
  });

  it('keeps its outbox entry until the card shows that decision', async () => {
    whilePosting = () => shop.say(approval, 'ana');
    const update = vi
      .spyOn(cards, 'update')
      .mockRejectedValueOnce(new TargetRefused('Slack is down', { retryable: true }));
    await announce();
    update.mockRestore();
    expect(entries()).toEqual([{ ...entry, attempts: 1 }]);
  });

  it('shows an edit that was made while the card was posted', async () => {
    whilePosting = edit;
    await announce();
    expect(await now()).toMatchObject({ status: 'notified', edits: [{ person: 'ana' }], revision: 3 });
    expect(shown).toMatchObject([{ status: 'notified', edits: [{ person: 'ana' }], revision: 3 }]);
  });

  it('changes nothing more if the response to its own write is lost', async () => {
    const { storeCard } = shop.runs;
    const lost = vi.spyOn(shop.runs, 'storeCard').mockImplementationOnce(async (...args) => {
      await storeCard.apply(shop.runs, args);
      return 'changed';
    });
    await announce();
    lost.mockRestore();
    expect(await now()).toMatchObject({ status: 'notified', revision: 2 });
    expect(entries()).toHaveLength(1);
  });
});

it('an approval whose reminder is due soon is not announced: its execution starts at once', async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  const soon = await shop.upToGate(ASSIGN('approvals: { slaSeconds: 239 }'));
  vi.unstubAllGlobals();
  expect(isAnnouncedFirst(soon.approval)).toBe(false);
  expect(isAnnouncedFirst(approval)).toBe(true);
  expect(shop.outbox.receiveAnnouncements()).toEqual([]);
  expect(shop.outbox.startedApprovals()).toMatchObject([{ approvalId: soon.approval.approvalId }]);
});
