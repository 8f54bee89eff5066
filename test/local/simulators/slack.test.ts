import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listen, openWorld, SIGNING_SECRET, stop, type VendorJson, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const TOKEN = { authorization: 'Bearer xoxb-local' };
const slack = async (method: string, body: unknown) =>
  (await world.ask('POST', `/slack/api/${method}`, body, TOKEN)).body;
const CARD = [
  { type: 'section', text: { type: 'mrkdwn', text: '*Approve?*' } },
  {
    type: 'actions',
    block_id: 'decide',
    elements: [{ type: 'button', action_id: 'approve', value: 'run-1', text: { type: 'plain_text', text: 'Approve' } }],
  },
];
const MODAL = {
  type: 'modal',
  callback_id: 'reject',
  private_metadata: 'run-1',
  title: { type: 'plain_text', text: 'Reject' },
  submit: { type: 'plain_text', text: 'Reject' },
  blocks: [
    {
      type: 'input',
      block_id: 'reason',
      label: { type: 'plain_text', text: 'Why?' },
      element: { type: 'plain_text_input', action_id: 'text' },
    },
  ],
};

test('timestamps are unique and increase, also when the clock does not', async () => {
  const posted = await Promise.all(
    Array.from({ length: 20 }, () => slack('chat.postMessage', { channel: '#ops', text: 'x' })),
  );
  const ts = posted.map((answer) => answer.ts).sort();
  expect(new Set(ts).size).toBe(20);
  expect(ts[0]).toMatch(/^\d{10}\.\d{6}$/);
  const later = await slack('chat.postMessage', { channel: '#ops', text: 'x' });
  expect(later.ts > (ts.at(-1) ?? '')).toBe(true);
  world.nowMs -= 60_000;
  expect((await slack('chat.postMessage', { channel: '#ops', text: 'x' })).ts > later.ts).toBe(true);
});

test('a missing and an unknown token have different errors, both with status 200', async () => {
  const post = (headers: Record<string, string>) => world.ask('POST', '/slack/api/auth.test', {}, headers);
  expect(await post({})).toMatchObject({ status: 200, body: { ok: false, error: 'not_authed' } });
  expect(await post({ authorization: 'Bearer guess' })).toMatchObject({
    status: 200,
    body: { ok: false, error: 'invalid_auth' },
  });
  expect((await post(TOKEN)).body).toMatchObject({ ok: true, team_id: 'T100ACME' });
});

test('each team has its own workspace, named by the end of the token', async () => {
  const globex = { authorization: 'Bearer xoxb-local-globex' };
  const posted = await slack('chat.postMessage', { channel: '#approvals', text: 'of acme' });
  const other = (
    await world.ask('POST', '/slack/api/chat.postMessage', { channel: '#approvals', text: 'of globex' }, globex)
  ).body;
  expect([posted.message.team, other.message.team]).toEqual(['T100ACME', 'T200GLOBEX']);
  const { messages } = await slack('conversations.history', { channel: posted.channel });
  expect(messages.map((message: { text: string }) => message.text)).toEqual(['of acme']);
  const { sections } = (await world.ask('GET', '/state?form=cards')).body;
  expect(sections.slack.map(({ title, cards }: VendorJson) => [title, cards.length])).toEqual([
    ['#approvals', 1],
    ['#approvals (workspace globex)', 1],
  ]);
  const click = { channel: other.channel, ts: other.ts, action_id: 'approve' };
  expect(await world.ask('POST', '/slack/_click', { user: 'U100ANA', ...click })).toMatchObject({
    status: 404,
    body: { error: expect.stringContaining('the workspace acme has no message') },
  });
});

test('a form call and a JSON call have the same effect', async () => {
  const form = new URLSearchParams({ channel: '#ops', text: 'card', blocks: JSON.stringify(CARD) }).toString();
  const headers = { ...TOKEN, 'content-type': 'application/x-www-form-urlencoded' };
  const posted = (await world.ask('POST', '/slack/api/chat.postMessage', form, headers)).body;
  expect(posted.message.blocks[1].elements[0].action_id).toBe('approve');
});

test('the payload of metadata is returned only on request, otherwise only its type', async () => {
  const metadata = { event_type: 'countersign', event_payload: { key: 'k1' } };
  const { channel, ts } = await slack('chat.postMessage', { channel: '#ops', text: 'x', metadata });
  expect((await slack('conversations.history', { channel })).messages[0]).toMatchObject({
    metadata: { event_type: 'countersign' },
  });
  expect((await slack('conversations.history', { channel })).messages[0].metadata).not.toHaveProperty('event_payload');
  const [found] = (await slack('conversations.history', { channel, include_all_metadata: true })).messages;
  expect(found).toMatchObject({ ts, metadata });
});

test('history is newest first without replies, bounded by oldest, in pages; replies has the thread', async () => {
  const first = await slack('chat.postMessage', { channel: '#ops', text: 'first' });
  const { channel } = first;
  await slack('chat.postMessage', { channel, text: 'reply', thread_ts: first.ts });
  await slack('chat.postMessage', { channel, text: 'second' });
  await slack('chat.postMessage', { channel, text: 'third' });
  const texts = (answer: { messages: { text: string }[] }) => answer.messages.map((message) => message.text);
  expect(texts(await slack('conversations.history', { channel }))).toEqual(['third', 'second', 'first']);
  expect(texts(await slack('conversations.history', { channel, oldest: first.ts }))).toEqual(['third', 'second']);
  const page = await slack('conversations.history', { channel, limit: 2 });
  const { next_cursor } = page.response_metadata;
  expect([
    page.has_more,
    texts(await slack('conversations.history', { channel, limit: 2, cursor: next_cursor })),
  ]).toEqual([true, ['first']]);
  expect(texts(await slack('conversations.replies', { channel, ts: first.ts }))).toEqual(['first', 'reply']);
});

test('an update with only text removes the buttons', async () => {
  const { channel, ts } = await slack('chat.postMessage', { channel: '#ops', text: 'card', blocks: CARD });
  const updated = await slack('chat.update', { channel, ts, text: 'Approved by Ana' });
  expect(updated.message.text).toBe('Approved by Ana');
  const [shown] = (await slack('conversations.history', { channel })).messages;
  expect(shown.blocks.map(({ type }: { type: string }) => type)).toEqual(['rich_text']);
  expect((await slack('chat.update', { channel, ts: '1.2', text: 'x' })).error).toBe('message_not_found');
});

test('the permalink of a message names its channel and time', async () => {
  const { channel, ts } = await slack('chat.postMessage', { channel: '#ops', text: 'card' });
  const { permalink } = await slack('chat.getPermalink', { channel, message_ts: ts });
  expect(permalink).toBe(`https://acme.slack.com/archives/${channel}/p${ts.replace('.', '')}`);
  expect((await slack('chat.getPermalink', { channel, message_ts: '1.2' })).error).toBe('message_not_found');
});

test('blocks that Slack refuses are refused', async () => {
  const long = [{ type: 'header', text: { type: 'plain_text', text: 'x'.repeat(151) } }];
  expect(await slack('chat.postMessage', { channel: '#ops', text: 'x', blocks: long })).toMatchObject({
    ok: false,
    error: 'invalid_blocks',
  });
  expect((await slack('chat.postMessage', { channel: '#ops' })).error).toBe('no_text');
});

test('people are found by email and id', async () => {
  expect((await slack('users.lookupByEmail', { email: 'ben@acme.example' })).user.id).toBe('U200BEN');
  expect((await slack('users.info', { user: 'U300CHLOE' })).user.profile.email).toBe('chloe@acme.example');
  expect((await slack('users.lookupByEmail', { email: 'eve@acme.example' })).error).toBe('users_not_found');
});

describe('a person in the workspace', () => {
  interface Received {
    payload: VendorJson;
    signed: boolean;
  }
  let received: Received[];
  let product: Server;
  let answer: { status: number; body: string };
  /** What the product does before it answers. */
  let meanwhile: (payload: VendorJson) => Promise<unknown>;

  beforeEach(async () => {
    received = [];
    answer = { status: 200, body: '' };
    meanwhile = async () => {};
    product = createServer(async (request, response) => {
      const body = await text(request);
      const timestamp = request.headers['x-slack-request-timestamp'];
      const expected = `v0=${createHmac('sha256', SIGNING_SECRET).update(`v0:${timestamp}:${body}`).digest('hex')}`;
      const given = String(request.headers['x-slack-signature']);
      const signed = given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected));
      const fresh = Number(timestamp) === Math.floor(world.nowMs / 1000) && request.url === '/slack/interactivity';
      const payload = JSON.parse(new URLSearchParams(body).get('payload') ?? '');
      received.push({ payload, signed: signed && fresh });
      await meanwhile(payload);
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
    });
    world.callbackUrl = await listen(product);
  });
  afterEach(() => stop(product));

  const act = (verb: string, body: unknown) => world.ask('POST', `/slack/${verb}`, body);

  async function clickApprove() {
    const { channel, ts } = await slack('chat.postMessage', { channel: '#ops', text: 'card', blocks: CARD });
    const outcome = await act('_click', { user: 'U100ANA', channel, ts, action_id: 'approve' });
    return { channel, ts, outcome };
  }

  async function openModal(user = 'U100ANA') {
    const { channel, ts } = await slack('chat.postMessage', { channel: '#ops', text: 'card', blocks: CARD });
    await act('_click', { user, channel, ts, action_id: 'approve' });
    const opened = await slack('views.open', { trigger_id: received.at(-1)?.payload.trigger_id, view: MODAL });
    return opened.view.id as string;
  }

  test('sends a signed block_actions callback with a click', async () => {
    const { channel, ts, outcome } = await clickApprove();
    expect(outcome.body).toMatchObject({ ok: true, status: 200 });
    expect(received).toHaveLength(1);
    expect(received[0]?.signed).toBe(true);
    expect(received[0]?.payload).toMatchObject({
      type: 'block_actions',
      user: { id: 'U100ANA', team_id: 'T100ACME' },
      container: { type: 'message', message_ts: ts, channel_id: channel },
      message: { ts },
      actions: [{ action_id: 'approve', block_id: 'decide', value: 'run-1', type: 'button' }],
    });
    expect(await world.calls('?method=POST')).toHaveLength(1);
  });

  test('sees when the endpoint does not exist, refuses, or is not reachable', async () => {
    answer = { status: 404, body: '{}' };
    expect((await clickApprove()).outcome.body).toMatchObject({
      ok: false,
      status: 404,
      message: expect.stringContaining('does not exist (404)'),
    });
    answer = { status: 401, body: '{"detail":"bad signature"}' };
    expect((await clickApprove()).outcome.body.message).toContain('refused the callback (401): bad signature');
    world.callbackUrl = 'http://127.0.0.1:1';
    expect((await clickApprove()).outcome.body).toMatchObject({
      ok: false,
      message: expect.stringContaining('could not be reached'),
    });
  });

  test('sees a private message as the result of a click', async () => {
    meanwhile = ({ response_url }) =>
      world.ask('POST', new URL(response_url).pathname.replace('/_sim', ''), { text: 'You are a maker of it.' });
    expect((await clickApprove()).outcome.body).toMatchObject({ isPrivate: true, message: 'You are a maker of it.' });
    meanwhile = async () => {};
    expect((await clickApprove()).outcome.body).not.toHaveProperty('isPrivate');
  });

  test('of another team sends callbacks with the secret of that team', async () => {
    const globex = { authorization: 'Bearer xoxb-local-globex' };
    const card = { channel: '#ops', text: 'card', blocks: CARD };
    const { channel, ts } = (await world.ask('POST', '/slack/api/chat.postMessage', card, globex)).body;
    await act('_click', { user: 'U400GRETA', channel, ts, action_id: 'approve' });
    expect(received[0]?.payload).toMatchObject({ team: { id: 'T200GLOBEX' }, user: { team_id: 'T200GLOBEX' } });
  });

  test('cannot click a button that the card no longer has', async () => {
    const { channel, ts } = await clickApprove();
    await slack('chat.update', { channel, ts, text: 'Done' });
    const again = await act('_click', { user: 'U200BEN', channel, ts, action_id: 'approve' });
    expect([again.status, received.length]).toEqual([404, 1]);
    expect((await act('_click', { user: 'U999EVE', channel, ts, action_id: 'approve' })).status).toBe(400);
  });

  test('gets at most one modal per click, within three seconds', async () => {
    const view_id = await openModal();
    expect(view_id).toMatch(/^V/);
    const trigger_id = received[0]?.payload.trigger_id;
    expect((await slack('views.open', { trigger_id, view: MODAL })).error).toBe('exchanged_trigger_id');
    await clickApprove();
    world.nowMs += 3_000;
    expect((await slack('views.open', { trigger_id: received[1]?.payload.trigger_id, view: MODAL })).error).toBe(
      'expired_trigger_id',
    );
  });

  test('submits a modal: it stays open with errors and closes when it is accepted', async () => {
    const view_id = await openModal();
    const submit = (reason: string, user = 'U100ANA') =>
      act('_submit', { user, view_id, values: { reason: { text: reason } } });
    const openViews = async () => (await world.ask('GET', '/state')).body.views.length;

    expect((await submit(' ')).body.errors).toEqual({ reason: 'Please complete this required field.' });
    expect((await submit('mine', 'U200BEN')).status).toBe(404);
    expect(received).toHaveLength(1);

    answer.body = JSON.stringify({ response_action: 'errors', errors: { reason: 'Say more.' } });
    expect((await submit('no')).body).toMatchObject({ ok: false, errors: { reason: 'Say more.' } });
    expect(await openViews()).toBe(1);

    answer.body = '';
    expect((await submit('It would page everybody')).body.ok).toBe(true);
    expect(await openViews()).toBe(0);
    expect(received.at(-1)).toMatchObject({
      signed: true,
      payload: {
        type: 'view_submission',
        user: { id: 'U100ANA' },
        view: {
          id: view_id,
          callback_id: 'reject',
          private_metadata: 'run-1',
          state: { values: { reason: { text: { type: 'plain_text_input', value: 'It would page everybody' } } } },
        },
      },
    });
  });

  test('sees the message replaced through its response_url', async () => {
    const { channel } = await clickApprove();
    const url = new URL(received[0]?.payload.response_url);
    await world.ask('POST', url.pathname.replace('/_sim', ''), { replace_original: true, text: 'Approved' });
    expect((await slack('conversations.history', { channel })).messages[0].text).toBe('Approved');
  });
});
