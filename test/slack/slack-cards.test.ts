import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SlackCards } from '../../lambdas/slack/card/slack-cards.ts';
import { isSlackUrl } from '../../lambdas/slack/reply-to-click.ts';
import { MemoryConnections } from '../fakes/memory/memory-connections.ts';
import { approvalOf } from './approvals.ts';
import { openSlackWorld, type SlackWorld } from './slack-world.ts';

let world: SlackWorld;
beforeEach(async () => {
  world = await openSlackWorld();
});
afterEach(() => world.close());

const UNPOSTED = approvalOf({ card: undefined });
const fault = (path: string, how: object) => world.sim.ask('POST', '/faults', { system: 'slack', path, ...how });
const titles = async () => (await world.messages()).map(({ blocks, text }) => blocks?.[0]?.text?.text ?? text);

describe('a card', () => {
  it('is posted to the channel of the approval', async () => {
    const card = await world.cards.post(UNPOSTED, false);
    expect(await titles()).toEqual(['Approval needed: servicenow.incident.update']);
    expect((await world.messages())[0]).toMatchObject({ channel: card?.channel, ts: card?.ts });
    const [call] = await world.sim.calls('?method=POST');
    expect(call?.body).toMatchObject({ channel: '#approvals', parse: 'none', unfurl_links: false, mrkdwn: false });
  });

  it('whose response was lost is found and not posted twice', async () => {
    await fault('chat.postMessage', { kind: 'lost_answer' });
    await expect(world.cards.post(UNPOSTED, false)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    const found = await world.cards.post(UNPOSTED, true);
    expect(await world.messages()).toMatchObject([found]);
  });

  it('that may be posted is not posted again while Slack cannot be read', async () => {
    await fault('users.conversations', { kind: 'status', status: 503 });
    await expect(world.cards.post(UNPOSTED, true)).rejects.toMatchObject({ code: 'TARGET_REFUSED' });
    expect(await world.messages()).toEqual([]);
  });

  it('that may be posted is posted if Slack never allows the search for it', async () => {
    await fault('users.conversations', { kind: 'other_body', body: { ok: false, error: 'missing_scope' } });
    const card = await world.cards.post(UNPOSTED, true);
    expect(await world.messages()).toMatchObject([card]);
  });

  it('that never arrived is posted by the next attempt, even if there are other cards', async () => {
    await world.cards.post({ ...UNPOSTED, approvalId: 'run_2.1' }, false);
    await fault('chat.postMessage', { kind: 'status', status: 429, retryAfterSeconds: 1 });
    await expect(world.cards.post(UNPOSTED, false)).rejects.toMatchObject({ retryable: true });
    await world.cards.post(UNPOSTED, true);
    expect(await world.messages()).toHaveLength(2);
  });

  it('shows the outcome after the decision, without decision buttons', async () => {
    const approval = await world.post(UNPOSTED);
    await world.cards.update({ ...approval, status: 'expired' });
    expect(await titles()).toEqual(['Expired without a decision: servicenow.incident.update']);
    expect(JSON.stringify(await world.messages())).not.toContain('countersign_approve');
  });

  it('that is drawn from an older state last still ends with the newest state', async () => {
    const approval = await world.post(UNPOSTED);
    world.know({ ...approval, revision: 9, status: 'canceled' });
    await world.cards.update({ ...approval, revision: 8 });
    expect(await titles()).toEqual(['Canceled before a decision: servicenow.incident.update']);
  });

  it('that was deleted is given up; one that Slack refuses for now is tried again', async () => {
    const gone = approvalOf({ card: { channel: 'C0APPROVALS', ts: '1.000001' } });
    await world.cards.update(gone);
    expect(world.log.messages('error')).toEqual(['a card could not be updated']);
    const approval = await world.post(UNPOSTED);
    await fault('chat.update', { kind: 'status', status: 503 });
    await expect(world.cards.update(approval)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  });

  it('gets its reminder in its thread', async () => {
    const approval = await world.post(UNPOSTED);
    await world.cards.remind(approval, false);
    const [, reminder] = await world.messages();
    expect(reminder).toMatchObject({ thread_ts: approval.card?.ts, text: expect.stringContaining('Still waiting') });
  });

  it('gets one reminder even if the response is lost', async () => {
    const approval = await world.post(UNPOSTED);
    await fault('chat.postMessage', { kind: 'lost_answer' });
    await expect(world.cards.remind(approval, false)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await world.cards.remind(approval, true);
    expect((await world.messages()).map(({ text }) => text.split(':')[0])).toEqual([
      'Approval needed',
      expect.stringContaining('Still waiting'),
    ]);
  });
});

describe('an overdue approval', () => {
  const alerts = async () => (await world.state()).alerts;

  it('pages once, however often it is sent, and is resolved with the decision', async () => {
    const approval = await world.post(
      approvalOf({ card: undefined, requirement: { tier: 'high', quorum: 1, groups: [] } }),
    );
    await world.cards.alert(approval);
    await world.cards.alert(approval);
    expect(await alerts()).toMatchObject([
      { dedup_key: approval.approvalId, status: 'triggered', severity: 'critical', triggers: 2 },
    ]);
    await world.cards.update({ ...approval, status: 'approved', escalatedAt: approval.slaAt });
    expect(await alerts()).toMatchObject([{ status: 'resolved' }]);
  });

  it('is resolved with the decision, also while Slack is down', async () => {
    const approval = await world.post(UNPOSTED);
    await world.cards.alert(approval);
    await fault('chat.update', { kind: 'status', status: 503 });
    await expect(
      world.cards.update({ ...approval, status: 'approved', escalatedAt: approval.slaAt }),
    ).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(await alerts()).toMatchObject([{ status: 'resolved' }]);
  });

  it('pages nobody if there is no PagerDuty connection', async () => {
    const approval = await world.post(UNPOSTED);
    const slack = await world.ports.connections.open('acme', 'slack');
    const cards = new SlackCards({
      ...world.ports,
      people: world.definitions,
      connections: new MemoryConnections({ acme: { slack } }),
    });
    await cards.alert(approval);
    expect(await alerts()).toEqual([]);
  });
});

describe('a response_url', () => {
  it.each([
    ['https://hooks.slack.com/actions/T1/2/3', 'https://slack.com', true],
    ['https://hooks.slack-gov.com/actions/T1/2/3', 'https://slack.com', true],
    ['http://127.0.0.1:4000/_sim/slack/actions/T1/2', 'http://127.0.0.1:4000/_sim/slack', true],
    ['http://hooks.slack.com/actions/T1/2/3', 'https://slack.com', false],
    ['https://hooks.slack.com.evil.example/actions', 'https://slack.com', false],
    ['https://hooks.slack.com:8443/actions', 'https://slack.com', false],
    ['https://user@hooks.slack.com/actions', 'https://slack.com', false],
    ['https://evil.example/?https://hooks.slack.com', 'https://slack.com', false],
    ['http://127.0.0.1:4000/api/v1/runs', 'http://127.0.0.1:4000/_sim/slack', false],
    ['http://127.0.0.1:4000/_sim/slackers', 'http://127.0.0.1:4000/_sim/slack', false],
    ['http://127.0.0.1:4000/_sim/slack/../../api', 'http://127.0.0.1:4000/_sim/slack', false],
    ['http://169.254.169.254/latest', 'https://slack.com', false],
    ['', 'https://slack.com', false],
    ['file:///etc/passwd', 'https://slack.com', false],
  ])('%s, with a connection to %s, is accepted: %s', (url, baseUrl, believed) => {
    expect(isSlackUrl(url, baseUrl)).toBe(believed);
  });
});
