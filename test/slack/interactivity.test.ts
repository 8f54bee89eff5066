import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Approval } from '../../lambdas/run/approval.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import { handleInteraction } from '../../lambdas/slack/handle-interaction.ts';
import { viewProblems } from '../../local/simulators/slack/block-limits.ts';
import { approvalOf, writing } from './approvals.ts';
import { ANA, BEN, CHLOE, openSlackWorld, type SlackWorld, slackRequest, TEAM } from './slack-world.ts';

let world: SlackWorld;
let approval: Approval;
beforeEach(async () => {
  world = await openSlackWorld();
  approval = await world.post(approvalOf());
});
afterEach(() => world.close());

const seen = { tenant: 'acme', approvalId: 'run_0123456789abcdef.1', actionHash: 'a'.repeat(64), via: 'slack' };
const refuse = (code: ConstructorParameters<typeof CountersignError>[0], message: string) => () => {
  throw new CountersignError(code, message);
};

describe('a click on Approve', () => {
  it('decides as the person with the Slack identity on the action that the card showed', async () => {
    world.decides = () => ({ approval, outcome: 'approved' });
    expect(await world.click(ANA, approval, 'approve')).toMatchObject({ ok: true, status: 200, message: 'Accepted.' });
    expect(world.decisions).toEqual([{ ...seen, person: 'ana', decision: { kind: 'approve' } }]);
    expect(await world.replies(ANA)).toEqual([]);
  });

  it('shows only to the person that more approvals are needed, or that they have already approved', async () => {
    const voted = approvalOf({
      requirement: { tier: 'high', quorum: 3, groups: [] },
      votes: [{ person: 'ana', via: 'slack', decision: 'approve', at: approval.requestedAt }],
    });
    world.decides = () => ({ approval: voted, outcome: 'counted', missing: 2 });
    await world.click(ANA, approval, 'approve');
    world.decides = () => ({ approval: voted, outcome: 'already' });
    await world.click(ANA, approval, 'approve');
    expect(await world.replies(ANA)).toEqual([
      'Your approval is recorded. 2 more of 3 are needed.',
      'You have already approved this; nothing changed.',
    ]);
  });

  it.each([
    ['APPROVAL_CLOSED', 'the approval was rejected by ben at 03:05'],
    ['APPROVAL_SELF', 'you had a hand in this write'],
    ['APPROVAL_STALE', 'it has changed since; look at it again'],
    ['APPROVAL_FORBIDDEN', 'this needs someone of dba'],
    ['NOT_FOUND', 'there is no approval'],
    ['CONFLICT', 'the run is changing too fast; try again'],
    ['CAP_EXCEEDED', 'as many runs are running as the cap allows'],
  ] as const)(
    'that is refused with %s shows the reason to the person, and Slack still gets a 200',
    async (code, message) => {
      world.decides = refuse(code, message);
      expect(await world.click(BEN, approval, 'approve')).toMatchObject({ ok: true, status: 200 });
      expect(await world.replies(BEN)).toEqual([message]);
      expect(await world.replies(ANA)).toEqual([]);
    },
  );

  it('by an unknown user decides nothing and shows what to do', async () => {
    expect(await world.click(CHLOE, approval, 'approve')).toMatchObject({ ok: true });
    expect(world.decisions).toEqual([]);
    expect(await world.replies(CHLOE)).toEqual([
      'Countersign does not know you. Ask an admin to add slack:T100ACME/U300CHLOE to your person, then try again.',
    ]);
  });

  it('that fails with an internal error is not acknowledged', async () => {
    world.decides = refuse('CHAIN_BROKEN', 'secret details');
    expect(await world.click(ANA, approval, 'approve')).toMatchObject({ ok: false, status: 500 });
    expect(await world.replies(ANA)).toEqual([]);
  });

  it('counts even if the reply to the person fails', async () => {
    world.decides = () => ({ approval, outcome: 'already' });
    await world.sim.ask('POST', '/faults', { system: 'slack', path: '/actions/', kind: 'status', status: 404 });
    expect(await world.click(ANA, approval, 'approve')).toMatchObject({ ok: true });
    expect(world.log.messages('warn')).toEqual(['the reply to a click could not be sent']);
  });

  it('is acknowledged in time even if Slack is slow', async () => {
    world.decides = () => ({ approval, outcome: 'already' });
    world.ports.sleep = async () => {};
    await world.sim.ask('POST', '/faults', { system: 'slack', path: '/actions/', kind: 'delay', delayMs: 60_000 });
    expect(await world.click(ANA, approval, 'approve')).toMatchObject({ ok: true, message: 'Accepted.' });
  });

  it('by a guest from another organization is not the click of the user with the same id here', async () => {
    const payload = {
      type: 'block_actions',
      team: { id: TEAM },
      user: { id: ANA, team_id: 'T999OTHER' },
      trigger_id: '1',
      actions: [{ action_id: 'countersign_approve', value: JSON.stringify(seen) }],
    };
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    await handleInteraction(world.ports, slackRequest(body, { nowMs: world.sim.nowMs }));
    expect(world.decisions).toEqual([]);
  });
});

describe('a click on Reject', () => {
  it('asks for a reason, and rejects with it', async () => {
    world.decides = () => ({ approval, outcome: 'rejected' });
    await world.click(ANA, approval, 'reject');
    const { id, user } = await world.modal();
    expect([user, world.decisions]).toEqual([ANA, []]);
    expect((await world.submit(ANA, id, { reason: { typed: ' It would page everybody ' } })).ok).toBe(true);
    expect(world.decisions).toEqual([
      { ...seen, person: 'ana', decision: { kind: 'reject', reason: 'It would page everybody' } },
    ]);
    expect((await world.state()).views).toEqual([]);
  });

  it('without a reason is not sent, and a refusal is shown in the modal', async () => {
    await world.click(ANA, approval, 'reject');
    const { id } = await world.modal();
    expect((await world.submit(ANA, id, { reason: { typed: '  ' } })).errors).toHaveProperty('reason');
    world.decides = refuse('APPROVAL_CLOSED', 'the approval was approved by ben');
    expect(await world.submit(ANA, id, { reason: { typed: 'no' } })).toMatchObject({
      ok: false,
      errors: { reason: 'the approval was approved by ben' },
    });
  });

  it.each([
    ['decided', { status: 'approved' as const }, 'This approval is already approved.'],
    [
      'changed',
      { actionHash: 'd'.repeat(64) },
      'The write has changed since you opened the card; read the card again.',
    ],
  ])('on an approval that is %s meanwhile opens no modal', async (_what, differing, message) => {
    world.know({ ...approval, ...differing });
    await world.click(ANA, approval, 'reject');
    expect(await world.modal()).toBeUndefined();
    expect(await world.replies(ANA)).toEqual([message]);
  });

  it('that Slack refuses as too late opens no modal and shows the reason', async () => {
    const body = { ok: false, error: 'expired_trigger_id' };
    await world.sim.ask('POST', '/faults', { system: 'slack', path: 'views.open', kind: 'other_body', body });
    await world.click(ANA, approval, 'reject');
    expect(await world.replies(ANA)).toEqual([expect.stringContaining('Slack refused')]);
  });
});

describe('a click on Edit', () => {
  beforeEach(async () => {
    approval = await world.post(approvalOf({ ...writing({ group: 'Database', state: 2 }), approvalId: 'run_1.2' }));
    world.decides = () => ({ approval, outcome: 'edited' });
  });
  const typed = (group: string, state: string) => ({ 'field-0': { typed: group }, 'field-1': { typed: state } });

  it('shows the fields and sends only the changed ones', async () => {
    await world.click(BEN, approval, 'edit');
    const { id } = await world.modal();
    expect((await world.submit(BEN, id, typed('Network', '2'))).ok).toBe(true);
    expect(world.decisions).toEqual([
      { ...seen, approvalId: 'run_1.2', person: 'ben', decision: { kind: 'edit', fields: { group: 'Network' } } },
    ]);
  });

  it.each([
    ['nothing was changed', typed('Database', '2'), { 'field-0': 'Nothing was changed.' }],
    ['what was typed is no value', typed('Database', 'two'), { 'field-1': expect.stringContaining('Enter JSON') }],
    ['policy denies it', typed('Network', '2'), { 'field-0': 'policy denies the edited write: no' }],
  ])('keeps the modal open if %s', async (_what, values, errors) => {
    world.decides = refuse('POLICY_DENIED', 'policy denies the edited write: no');
    await world.click(BEN, approval, 'edit');
    const { id } = await world.modal();
    expect(await world.submit(BEN, id, values)).toMatchObject({ ok: false, errors });
  });

  it('is refused if another person edited the write while the modal was open', async () => {
    await world.click(BEN, approval, 'edit');
    const { id } = await world.modal();
    world.know({ ...approval, actionHash: 'e'.repeat(64) });
    expect((await world.submit(BEN, id, typed('Network', '2'))).errors['field-0']).toContain('has changed since');
    expect(world.decisions).toEqual([]);
  });
});

describe('a click on Show all', () => {
  it('opens the full text, page by page', async () => {
    approval = await world.post(approvalOf({ ...writing({ note: 'x'.repeat(60_000) }), approvalId: 'run_1.3' }));
    await world.click(ANA, approval, 'show_all');
    const { id, view } = await world.modal();
    expect(view.title.text).toBe('Page 1 of 3');
    for (const title of ['Page 2 of 3', 'Page 3 of 3', 'Page 1 of 3']) {
      expect((await world.submit(ANA, id, {})).ok).toBe(true);
      expect((await world.modal()).view.title.text).toBe(title);
    }
  });

  it('for an approval that no longer exists shows that in the modal, which has no inputs', async () => {
    await world.click(ANA, approval, 'show_all');
    const { id } = await world.modal();
    world.approvals.clear();
    expect((await world.submit(ANA, id, {})).ok).toBe(true);
    const { view } = await world.modal();
    expect(viewProblems(view)).toBeUndefined();
    expect(JSON.stringify(view.blocks)).toContain('This approval no longer exists.');
  });

  it('works for a closed approval too', async () => {
    world.know({ ...approval, status: 'expired' });
    await world.click(ANA, approval, 'show_all');
    expect((await world.modal()).view.title.text).toBe('All details');
  });
});

describe('an interaction', () => {
  const click = (team: string, approvalId = seen.approvalId) =>
    new URLSearchParams({
      payload: JSON.stringify({
        type: 'block_actions',
        team: { id: team },
        user: { id: ANA, team_id: TEAM },
        trigger_id: '1',
        response_url: 'http://169.254.169.254/latest/meta-data',
        actions: [{ action_id: 'countersign_approve', value: JSON.stringify({ ...seen, approvalId }) }],
      }),
    }).toString();
  const send = (body: string, how: { secret?: string; offByMs?: number } = {}) =>
    handleInteraction(world.ports, slackRequest(body, { nowMs: world.sim.nowMs, ...how }));

  it.each([
    ['a wrong signature', () => send(click(TEAM), { secret: 'wrong' })],
    ['the signature of another tenant', () => send(click(TEAM), { secret: 'globex-signing-secret' })],
    ['an unknown team', () => send(click('T000NOBODY'))],
    ['our own secret for another tenant’s team', () => send(click('T200GLOBEX'))],
    ['a time too far back', () => send(click(TEAM), { offByMs: -301_000 })],
    ['a time too far ahead', () => send(click(TEAM), { offByMs: 301_000 })],
    ['no team at all', () => send('payload=%7B%7D')],
    ['garbage', () => send('\u0000{')],
  ])('with %s is unauthorized with the same message, and decides nothing', async (_what, sending) => {
    await expect(sending()).rejects.toMatchObject({
      status: 401,
      message: 'the signature does not match this workspace, body and time',
    });
    expect(world.decisions).toEqual([]);
  });

  it('is checked with the bytes as sent, also in base64', async () => {
    world.decides = () => ({ approval, outcome: 'approved' });
    const event = slackRequest(click(TEAM), { nowMs: world.sim.nowMs });
    const encoded = { ...event, isBase64Encoded: true, body: Buffer.from(event.body ?? '').toString('base64') };
    expect((await handleInteraction(world.ports, encoded)).statusCode).toBe(200);
    await expect(handleInteraction(world.ports, { ...event, body: `${event.body}&a=b` })).rejects.toMatchObject({
      status: 401,
    });
    expect(world.decisions).toHaveLength(1);
  });

  it('is accepted with both secrets during a rotation', async () => {
    world.decides = () => ({ approval, outcome: 'approved' });
    world.ports.secrets.change('acme', { slack: ['a-new-signing-secret', 'local-slack-signing-secret'] });
    for (const secret of ['a-new-signing-secret', 'local-slack-signing-secret']) await send(click(TEAM), { secret });
    world.ports.secrets.change('acme', { slack: ['a-new-signing-secret'] });
    await expect(send(click(TEAM))).rejects.toMatchObject({ status: 401 });
    expect(world.decisions).toHaveLength(2);
  });

  it('is refused if two tenants share a workspace and its secret', async () => {
    const { saveConnection } = world.definitions;
    await saveConnection.call(world.definitions, 'globex', {
      name: 'slack',
      baseUrl: 'https://slack.com',
      instance: TEAM,
    });
    world.ports.secrets.change('globex', { slack: 'local-slack-signing-secret' });
    world.sim.nowMs += 61_000;
    await expect(send(click(TEAM))).rejects.toMatchObject({ status: 401 });
    expect(world.log.messages('error')).toHaveLength(1);
  });

  it('never causes a request to an address that is not Slack’s', async () => {
    world.decides = () => ({ approval, outcome: 'already' });
    expect((await send(click(TEAM))).statusCode).toBe(200);
    expect(world.log.messages('warn')).toEqual(['the reply to a click could not be sent']);
  });

  it('of an unused type is acknowledged', async () => {
    const other = { type: 'shortcut', team: { id: TEAM }, user: { id: ANA } };
    const body = new URLSearchParams({ payload: JSON.stringify(other) }).toString();
    expect(await send(body)).toEqual({ statusCode: 200, body: '' });
  });

  it('with a button of an older card decides nothing', async () => {
    const body = click(TEAM).replace('actionHash', 'hash');
    expect((await send(body)).statusCode).toBe(200);
    expect(world.decisions).toEqual([]);
  });

  it('that is too large is refused before it is read', async () => {
    await expect(send('x'.repeat(4 * 1024 * 1024 + 1))).rejects.toMatchObject({ status: 413 });
  });
});
