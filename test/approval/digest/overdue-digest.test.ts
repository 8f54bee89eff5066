import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Approval } from '../../../lambdas/run/approval.ts';
import { MINUTE_MS, OverdueWorld } from './overdue-world.ts';

let world: OverdueWorld;
beforeEach(() => {
  world = new OverdueWorld();
  vi.stubGlobal('fetch', world.targets.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const textOf = (at: number) => JSON.stringify(world.messages()[at]?.blocks);
const entryOf = ({ approvalId }: Approval) => {
  const entry = world.outbox.all().find((each) => 'approvalId' in each && each.approvalId === approvalId);
  if (!entry) throw new Error(`no entry of ${approvalId}`);
  return entry;
};

describe('the digest', () => {
  it('lists all overdue approvals of a channel, the longest overdue first, and removes their outbox entries', async () => {
    world.overdue('one');
    world.clock.advance(20_000);
    world.overdue('two');
    world.overdue('elsewhere', { channel: '#payments' });
    await world.later(2);
    expect(world.shown()).toEqual(['2 approvals are overdue']);
    expect(textOf(0).indexOf('about one')).toBeLessThan(textOf(0).indexOf('about two'));
    expect(world.shown('#payments')).toEqual(['1 approval is overdue']);
    expect(world.waiting().sort()).toEqual(['run_elsewhere repeat_digest', 'run_one repeat_digest']);
  });

  it('is posted once, however many messages ask for it at once and again', async () => {
    const approvals = ['one', 'two', 'three', 'four'].map((name) => world.overdue(name));
    const entries = approvals.map(entryOf);
    await world.later(2);
    await Promise.all(entries.map((entry) => world.send(entry)));
    await world.later(5);
    expect(world.shown()).toEqual(['4 approvals are overdue']);
  });

  it('is not posted for approvals that were decided before it, or have expired by the clock', async () => {
    world.close(world.overdue('decided'));
    const expired = world.overdue('expired', { expiresAt: new Date(world.clock.now() + 1_000).toISOString() });
    await world.later(2);
    expect(world.messages()).toEqual([]);
    expect(world.waiting()).toEqual(['run_expired list_overdue']);
    world.close(expired, 'expired');
    await world.later(2);
    expect(world.waiting()).toEqual([]);
  });

  it('has no buttons: nothing in it decides', async () => {
    world.overdue('one');
    await world.later(2);
    expect(textOf(0)).not.toContain('button');
    expect(textOf(0)).toContain('Nothing is written before people decide');
  });

  it('collects newly overdue approvals for five minutes, and then lists all that are open, the new ones marked', async () => {
    world.overdue('one');
    const decided = world.overdue('decided');
    await world.later(2);
    world.close(decided);
    world.overdue('two');
    await world.later(2);
    world.overdue('three');
    await world.later(2);
    expect(world.shown()).toHaveLength(1);
    await world.later(2);
    expect(world.shown()).toEqual(['2 approvals are overdue', '3 approvals are overdue']);
    expect(textOf(1)).toContain('2 new. ');
    expect(textOf(1)).not.toContain('about decided');
    expect(world.waiting()).toEqual(['run_one repeat_digest']);
  });

  it('is repeated every hour, or as the settings say, while approvals are open', async () => {
    const approval = world.overdue('one');
    await world.later(2);
    await world.later(59);
    expect(world.shown()).toHaveLength(1);
    world.settings = { overdueDigestMinutes: 240 };
    await world.later(2);
    expect(world.shown()).toEqual(['1 approval is overdue', '1 approval is overdue']);
    await world.later(239);
    expect(world.shown()).toHaveLength(2);
    world.close(approval);
    await world.later(2);
    expect(world.shown()).toEqual(['1 approval is overdue', 'The overdue approval is closed']);
    expect(world.waiting()).toEqual([]);
  });

  it('says that all are closed if they were decided while it was posted', async () => {
    const approval = world.overdue('one');
    world.passage = async (name, run) => {
      if (name === 'complete') world.close(approval);
      return run();
    };
    await world.later(2);
    expect(world.shown()).toEqual(['The overdue approval is closed']);
    expect(world.waiting()).toEqual([]);
  });

  it('needs no Slack: a tenant without it has no digest and no outbox entries', async () => {
    world.hasSlack = false;
    world.overdue('one');
    await world.later(2);
    expect([world.messages(), world.waiting(), world.targets.calls]).toEqual([[], [], []]);
  });
});

describe('while Slack fails, the digest', () => {
  it.each([
    ['refuses it for now', { status: 429, retryAfterSeconds: 90 }],
    ['cannot be reached', 'unreachable'],
    ['does not know the channel', { body: { ok: false, error: 'channel_not_found' } }],
  ] as const)('is tried again later, with what became overdue meanwhile, if Slack %s', async (_how, fault) => {
    world.overdue('one');
    if (typeof fault === 'object' && 'body' in fault) world.targets.channels.delete('#approvals');
    else world.targets.next('POST slack', fault);
    await world.later(2);
    await world.sweep();
    expect(world.targets.callsOf('POST slack').length).toBeLessThanOrEqual(1);
    expect(world.waiting()).toEqual(['run_one list_overdue']);
    world.targets.channels.set('#approvals', []);
    world.overdue('two');
    await world.later(2);
    expect(world.shown()).toEqual(['2 approvals are overdue']);
    expect(world.log.messages('warn')).toEqual(['a digest could not be posted; the sweeper tries again']);
  });

  it('whose response was lost is found by its mark, after the lease, and is not posted twice', async () => {
    world.overdue('one');
    world.targets.next('POST slack', 'lost_answer');
    await world.later(2);
    expect(world.waiting()).toEqual(['run_one list_overdue']);
    await world.sweep();
    expect(world.targets.callsOf('GET slack')).toEqual([]);
    world.overdue('two');
    await world.later(2);
    expect(world.shown()).toEqual(['1 approval is overdue']);
    expect(world.waiting().sort()).toEqual(['run_one repeat_digest', 'run_two list_overdue']);
    await world.later(5);
    expect(world.shown()).toEqual(['1 approval is overdue', '2 approvals are overdue']);
  });

  it('that never arrived is collected again and posted under another number', async () => {
    world.overdue('one');
    world.targets.next('POST slack', 'lost_request');
    await world.later(2);
    world.overdue('two');
    await world.later(2);
    expect(world.shown()).toEqual(['2 approvals are overdue']);
    expect(world.digests.peek('acme', '#approvals')).toMatchObject({ number: 2, posted: { number: 2 } });
  });

  it('is not posted again while Slack cannot be searched', async () => {
    world.overdue('one');
    world.targets.next('POST slack', 'lost_answer');
    await world.later(2);
    world.targets.next('GET slack', { status: 503 });
    await world.later(2);
    expect(world.shown()).toHaveLength(1);
    expect(world.waiting()).toEqual(['run_one list_overdue']);
    await world.later(2);
    expect(world.shown()).toHaveLength(1);
    expect(world.waiting()).toEqual(['run_one repeat_digest']);
  });

  it('is posted once if its function dies after the post, and its approvals are listed once', async () => {
    world.overdue('one');
    world.overdue('two');
    const dies = (when: string) => {
      world.passage = async (name, run) => {
        if (name === when && world.messages().length > 0) throw new Error('killed');
        return run();
      };
    };
    dies('saveDigests');
    world.clock.advance(2 * MINUTE_MS);
    await expect(world.sweep()).rejects.toThrow('killed');
    dies('complete');
    world.clock.advance(2 * MINUTE_MS);
    await expect(world.sweep()).rejects.toThrow('killed');
    expect(world.waiting()).toHaveLength(3);
    world.passage = (_name, run) => run();
    await world.later(6);
    expect(world.shown()).toEqual(['2 approvals are overdue']);
    expect(world.waiting()).toEqual(['run_one repeat_digest']);
  });

  it('stays as it is if it cannot be updated, and its repeat updates it', async () => {
    const approval = world.overdue('one');
    await world.later(2);
    world.close(approval);
    world.targets.next('POST slack', { status: 503 });
    await world.later(61);
    expect(world.shown()).toEqual(['1 approval is overdue']);
    await world.later(1);
    expect(world.shown()).toEqual(['The overdue approval is closed']);
    expect(world.waiting()).toEqual([]);
  });
});
