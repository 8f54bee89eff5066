import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { handleCommand } from '../../lambdas/slack/handle-command.ts';
import { handleEvent } from '../../lambdas/slack/handle-event.ts';
import { blockProblems, isTooLongForMessage } from '../../local/simulators/slack/block-limits.ts';
import { approvalOf } from './approvals.ts';
import { ANA, CHLOE, openSlackWorld, type SlackWorld, slackRequest, TEAM } from './slack-world.ts';

let world: SlackWorld;
beforeEach(async () => {
  world = await openSlackWorld();
});
afterEach(() => world.close());

const type = (user: string, typed: string) => world.act('_command', { user, typed });

describe('/countersign', () => {
  it('pending lists the open approvals and the people they need, only to the person who typed it', async () => {
    world.know(approvalOf({ requirement: { tier: 'high', quorum: 2, groups: [['dba']] } }));
    expect(await type(ANA, '/countersign pending')).toMatchObject({ ok: true, status: 200 });
    const [message] = await world.messages();
    expect(message.ephemeral_for).toBe(ANA);
    const text = JSON.stringify(message.blocks);
    expect(text).toContain('servicenow.incident.update');
    expect(text).toContain('Needs 2 people who may approve tier high');
  });

  it('pending links to the details of each approval and to the next page', async () => {
    const approval = approvalOf();
    world.know(approval);
    world.pending.next = 'the second page';
    await type(ANA, '/countersign pending');
    const [list] = await world.messages();
    const onList = { ...approval, card: { channel: list.channel, ts: list.ts } };
    await world.click(ANA, onList, 'show_all');
    expect((await world.modal()).view.title.text).toBe('All details');
    world.pending.next = undefined;
    await world.click(ANA, onList, 'more_pending');
    expect(world.pending.asked).toEqual([undefined, 'the second page']);
    expect(await world.replies(ANA)).toHaveLength(2);
  });

  it('pending stays within Slack’s limits: with long texts it shows fewer approvals per page', async () => {
    const long = '"<\u202e>\n'.repeat(100);
    const groups = Array.from({ length: 4 }, (_, set) =>
      Array.from({ length: 6 }, (_, n) => `group-${set}-${n}-${'x'.repeat(50)}`),
    );
    for (let n = 0; n < 8; n += 1) {
      const approvalId = `run_0123456789abcde${n}.1`;
      world.know(
        approvalOf({ approvalId, title: long, automation: long, requirement: { tier: 'high', quorum: 2, groups } }),
      );
    }
    await type(ANA, '/countersign pending');
    const [list] = await world.messages();
    expect(blockProblems(list.blocks)).toEqual([]);
    expect(isTooLongForMessage(list.blocks)).toBe(false);
    const shown = list.blocks.filter(({ type }: { type: string }) => type === 'rich_text');
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.length).toBeLessThan(8);
  });

  it('pending says when there are no open approvals, and omits one that was just decided', async () => {
    world.know(approvalOf({ status: 'approved' }));
    await type(ANA, '/countersign pending');
    expect(await world.replies(ANA)).toEqual(['No approvals are pending.']);
  });

  it.each(['/countersign', '/countersign help me', '/countersign  approve all'])(
    '%s says what it can do',
    async (typed) => {
      await type(ANA, typed);
      expect(await world.replies(ANA)).toEqual([expect.stringContaining('/countersign pending')]);
    },
  );

  it('only explains to an unknown user how to get access', async () => {
    world.know(approvalOf());
    await type(CHLOE, '/countersign pending');
    expect(await world.replies(CHLOE)).toEqual([expect.stringContaining('slack:T100ACME/U300CHLOE')]);
    expect(world.pending.asked).toEqual([]);
  });

  it('without a valid signature is unauthorized', async () => {
    const body = new URLSearchParams({ team_id: TEAM, user_id: ANA, text: 'pending' }).toString();
    const unsigned = slackRequest(body, { nowMs: world.sim.nowMs, secret: 'wrong' });
    await expect(handleCommand(world.ports, unsigned)).rejects.toMatchObject({ status: 401 });
    expect(world.pending.asked).toEqual([]);
  });
});

describe('an event', () => {
  const receive = (body: object, secret?: string) =>
    handleEvent(world.ports, slackRequest(JSON.stringify(body), { nowMs: world.sim.nowMs, secret }));
  const challenge = { type: 'url_verification', challenge: 'echo me' };

  it('of type url_verification gets its challenge back, with any tenant’s secret', async () => {
    for (const secret of [undefined, 'globex-signing-secret']) {
      expect(JSON.parse((await receive(challenge, secret)).body ?? '')).toEqual({ challenge: 'echo me' });
    }
    await expect(receive(challenge, 'wrong')).rejects.toMatchObject({ status: 401 });
  });

  it('of a known workspace is acknowledged, of any other refused', async () => {
    expect(await receive({ type: 'event_callback', team_id: TEAM })).toEqual({ statusCode: 200, body: '' });
    await expect(receive({ type: 'event_callback', team_id: 'T000NOBODY' })).rejects.toMatchObject({ status: 401 });
    await expect(receive({ type: 'event_callback', team_id: 'T200GLOBEX' })).rejects.toMatchObject({ status: 401 });
    await expect(receive({})).rejects.toMatchObject({ status: 401 });
  });
});
