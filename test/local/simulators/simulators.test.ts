import { afterEach, beforeEach, expect, test } from 'vitest';
import { mrkdwn } from '../../../local/simulators/slack/mrkdwn.ts';
import { BASIC, BEARER, openWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const ISSUE = '/github/repos/octo-org/payments/issues/1';
const HOSTILE = '<img src=x onerror=alert(1)>"\'&';

test('calls are recorded in order, including reads and refusals, without credentials', async () => {
  await world.ask('GET', `${ISSUE}?page=1`, undefined, BEARER);
  await world.ask('POST', `${ISSUE}/labels`, { labels: ['triage'] }, BEARER);
  await world.ask('GET', '/servicenow/api/now/table/incident');
  const calls = await world.calls();
  expect(calls).toMatchObject([
    {
      system: 'github',
      method: 'GET',
      path: '/repos/octo-org/payments/issues/1?page=1',
      body: null,
      status: 200,
      at: '2026-01-02T03:04:05.000Z',
    },
    {
      system: 'github',
      method: 'POST',
      path: '/repos/octo-org/payments/issues/1/labels',
      body: { labels: ['triage'] },
      status: 200,
    },
    { system: 'servicenow', method: 'GET', status: 401 },
  ]);
  expect(JSON.stringify(calls)).not.toContain('local-token');
  expect(await world.calls('?system=github&method=post')).toHaveLength(1);
  expect(await world.calls(`?since=${calls[0]?.seq}&limit=1`)).toMatchObject([{ method: 'POST' }]);
  expect((await world.ask('GET', '/calls?since=x')).status).toBe(400);
});

test('clearing the calls does not reuse their numbers', async () => {
  await world.ask('GET', ISSUE, undefined, BEARER);
  const [first] = await world.calls();
  expect((await world.ask('DELETE', '/calls')).status).toBe(204);
  await world.ask('GET', ISSUE, undefined, BEARER);
  const after = await world.calls();
  expect(after).toHaveLength(1);
  expect(Number(after[0]?.seq)).toBeGreaterThan(Number(first?.seq));
});

test('acknowledged changes and their calls survive a restart', async () => {
  await world.ask('POST', `${ISSUE}/labels`, { labels: ['triage'] }, BEARER);
  const posted = await world.ask(
    'POST',
    '/slack/api/chat.postMessage',
    { channel: '#ops', text: 'hello' },
    { authorization: 'Bearer xoxb-1' },
  );
  const filed = await world.ask(
    'POST',
    '/servicenow/api/now/table/incident',
    { short_description: 'Disk full' },
    BASIC,
  );
  const before = await world.calls();
  world.reopen();
  expect(await world.calls()).toEqual(before);
  const state = (await world.ask('GET', '/state')).body;
  expect(state.incidents).toHaveLength(7);
  expect(state.incidents[0]).toMatchObject({
    sys_id: filed.body.result.sys_id,
    row: { short_description: 'Disk full' },
  });
  expect(state.channels).toMatchObject([{ name: 'ops', messages: [{ text: 'hello', ts: posted.body.ts }] }]);
  expect(state.issues.find((issue: { title: string }) => issue.title.startsWith('Refund')).labels).toEqual([
    'bug',
    'triage',
  ]);
});

test('the page is one file without external assets, and runs only its own script', async () => {
  const page = await world.ask('GET', '');
  expect(page.headers.get('content-type')).toContain('text/html');
  expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'.*script-src 'sha256-/);
  expect(page.body).not.toMatch(/(src|href)="(https?:)?\/\//);
});

test('the cards escape all payloads', async () => {
  const slack = { authorization: 'Bearer xoxb-1' };
  const plain = { type: 'plain_text', text: HOSTILE };
  await world.ask(
    'POST',
    '/servicenow/api/now/table/incident',
    { short_description: HOSTILE, work_notes: HOSTILE },
    BASIC,
  );
  await world.ask('POST', `${ISSUE}/labels`, { labels: [HOSTILE] }, BEARER);
  await world.ask('POST', `${ISSUE}/comments`, { body: HOSTILE }, BEARER);
  await world.ask('POST', '/slack/api/chat.postMessage', { channel: '#ops', text: HOSTILE }, slack);
  const blocks = [
    { type: 'header', text: plain },
    { type: 'section', text: { type: 'mrkdwn', text: HOSTILE }, fields: [plain] },
    { type: 'context', elements: [{ type: 'mrkdwn', text: HOSTILE }] },
    {
      type: 'actions',
      elements: [{ type: 'button', action_id: HOSTILE, value: HOSTILE, text: plain, style: '" onclick="alert(1)' }],
    },
    { type: HOSTILE },
  ];
  await world.ask('POST', '/slack/api/chat.postMessage', { channel: '#ops', text: 'x', blocks }, slack);
  const { sections } = (await world.ask('GET', '/state?form=cards')).body;
  const shown = JSON.stringify(sections);
  expect(shown).toContain('&lt;img src=x onerror=alert(1)&gt;');
  expect(shown).not.toContain('<img');
  expect(shown).not.toContain('onclick=\\"');
});

test('mrkdwn becomes bold, italic, code and links, and only safe links', () => {
  const of = (text: string) => mrkdwn(text).text;
  expect(of('*bold* _it_ ~no~ `a*b*` 2*3*4')).toBe(
    '<strong>bold</strong> <em>it</em> <s>no</s> <code>a*b*</code> 2*3*4',
  );
  expect(of('see *<https://x.example/?a=1&amp;b=2|the run>*')).toBe(
    'see <strong><a href="https://x.example/?a=1&amp;b=2" target="_blank" rel="noreferrer">the run</a></strong>',
  );
  expect(of('<javascript:alert(1)|click>')).toBe('&lt;javascript:alert(1)|click&gt;');
  expect(of('<https://x.example/"onmouseover=alert(1)|x>')).not.toContain('"onmouseover');
  expect(of('<@U200BEN> &lt;b&gt;\n> quoted')).toBe(
    '<span class="mention">@ben</span> &lt;b&gt;<br><span class="quote">quoted</span>',
  );
});

test('the state is sent only after a change', async () => {
  const { version } = (await world.ask('GET', '/state?form=cards')).body;
  expect((await world.ask('GET', `/state?form=cards&since=${version}`)).status).toBe(204);
  await world.ask('GET', ISSUE, undefined, BEARER);
  expect((await world.ask('GET', `/state?form=cards&since=${version}`)).status).toBe(200);
});

test('the state is sent after a restart, also to a reader with a version of the earlier start', async () => {
  const before = (await world.ask('GET', '/state?form=cards')).body;
  world.reopen();
  const after = await world.ask('GET', `/state?form=cards&since=${before.version}`);
  expect(after.status).toBe(200);
  expect(after.body.version).toBeGreaterThan(before.version);
});

test('an unknown path is 404 and lists the valid paths', async () => {
  const unknown = await world.ask('GET', '/nothing');
  expect(unknown.status).toBe(404);
  expect(unknown.body.valid).toContain('GET|DELETE /_sim/calls');
  expect((await world.ask('GET', 'ilar')).status).toBe(404);
  expect((await world.ask('GET', '/github/%E0%A4%A', undefined, BEARER)).status).toBe(400);
});
