import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Caller } from '../../lambdas/api/authorizer/caller.ts';
import { handleMcp } from '../../lambdas/api/mcp/mcp.ts';
import { TASKS_EXTENSION } from '../../lambdas/api/mcp/texts.ts';
import { type HttpEvent, httpHandler } from '../../lambdas/entry/http.ts';
import { ACTIONS_MAX, REFUSALS_RECORDED_MAX } from '../../lambdas/run/session.ts';
import { NO_SETTINGS } from '../../lambdas/run/settings/caps.ts';
import { controlRun } from '../../lambdas/run-changes/control/control-run.ts';
import { sealSessionToken } from '../../lambdas/run-changes/session/session-token.ts';
import { METRICS, type Measurement } from '../../lambdas/telemetry/metrics.ts';
import { byTest } from '../fakes/by-test.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { DENIED, GovernedWorkshop, needsApproval } from '../worker/governance/governed-workshop.ts';
import { type BegunSession, beginWithSession, ISSUE_FIELDS } from '../worker/session/open-session.ts';
import { ISSUE } from '../worker/workshop.ts';

const SECRET = 'a secret of the stage';
const VERSION = '2026-07-28';
const OPERATOR: Caller = { tenant: 'acme', person: 'oscar', role: 'operator' };

let shop: GovernedWorkshop;
let parent: BegunSession;
let recorded: Measurement[];
let proposed = 0;
const clients: Client[] = [];
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
  const github = { name: 'github', baseUrl: 'https://api.github.com', instance: 'github.com' };
  await shop.definitions.saveConnection('acme', github, byTest());
  parent = await beginWithSession(shop);
  recorded = [];
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  vi.unstubAllGlobals();
});

/** While the server waits for the result of a call, the worker does its work. */
async function workOnActions(): Promise<void> {
  for (const runId of await openActions()) await shop.work({ tenant: 'acme', runId });
}

async function openActions(): Promise<string[]> {
  const { items } = await shop.runs.listRuns('acme', { limit: 50 });
  return items.filter(({ request }) => request?.action).map(({ runId }) => runId);
}

const ports = () => ({
  ...shop.worker,
  definitions: shop.definitions,
  ids: { next: (prefix: string) => `${prefix}_${(++proposed).toString(16).padStart(32, 'a')}` },
  sessionSecret: async () => SECRET,
  pause: { sleep: workOnActions },
  telemetry: {
    record: (...metrics: Measurement[]) => void recorded.push(...metrics),
    committed: () => undefined,
    note: () => undefined,
  },
  issuers: [],
  version: '1',
  consoleUrl: 'https://console.example',
});

/** The function behind the official client. */
function sendTo(as: Caller | string) {
  return async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = Object.fromEntries(new Headers(init.headers));
    if (init.method !== 'POST') return new Response(null, { status: 405 });
    const event = {
      routeKey: 'POST /mcp',
      headers: { ...headers, ...(typeof as === 'string' && { authorization: `Bearer ${as}` }) },
      body: String(init.body),
      requestContext: {
        domainName: new URL(url).host,
        http: { method: 'POST' },
        authorizer: { lambda: typeof as === 'string' ? { refused: 'no JWT' } : as },
      },
    } as unknown as HttpEvent;
    const handler = httpHandler((each) => handleMcp(ports(), each));
    const { statusCode, body, headers: received } = await handler(event, {} as never);
    return new Response(body, { status: statusCode ?? 500, headers: received as Record<string, string> });
  };
}

async function connect(as: Caller | string, extensions = {}): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: { extensions }, versionNegotiation: { mode: { pin: VERSION } } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL('https://api.example/mcp'), { fetch: sendTo(as) }));
  clients.push(client);
  return client;
}

/** Without the client: its extension cancels only tasks that it has started itself. */
async function cancelTask(as: Caller | string, taskId: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/cancel', params: { taskId } });
  const response = await sendTo(as)('https://api.example/mcp', { method: 'POST', headers, body });
  return JSON.parse((await response.text()).replace(/^[^{]*/, ''));
}

async function call(client: Client, name: string, args: Record<string, unknown>) {
  const { structuredContent, isError = false } = await client.callTool({ name, arguments: args });
  return { isError, ...(structuredContent as { status?: string; actionId?: string; result?: unknown }) };
}

const token = (ofRun = parent) => sealSessionToken({ ...ofRun, stepIndex: 0 }, SECRET);
const refusals = () => recorded.filter(({ metric }) => metric === METRICS.actionsRefused);
const sessionFacts = async () => (await shop.now(parent)).steps[0]?.session;

it.each(['*/*', 'application/json, text/event-stream'])('a program that accepts %s gets a response', async (accept) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
  const headers = { 'content-type': 'application/json', accept };
  const response = await sendTo(token())('https://api.example/mcp', { method: 'POST', headers, body });
  expect(response.status).toBe(200);
});

describe('a session as an MCP client', () => {
  it('has the tools of its step, without the input that the step fixes', async () => {
    const { tools } = await (await connect(token())).listTools();
    expect(tools.map(({ name }) => name)).toEqual(['github_labels_add', 'github_assignees_add', 'get_action_result']);
    expect(Object.keys(tools[0]?.inputSchema.properties ?? {})).toEqual(['labels', 'idempotency_key']);
    expect(tools[0]?.inputSchema.required).toEqual(['labels']);
  });

  it('writes once what policy allows', async () => {
    const client = await connect(token());
    const made = await call(client, 'github_labels_add', { labels: ['triage'], idempotency_key: 'one' });
    expect(made).toMatchObject({ isError: false, status: 'succeeded', target: 'github:octo-org/payments#7' });
    expect(await call(client, 'github_labels_add', { labels: ['triage'], idempotency_key: 'one' })).toEqual(made);
    expect(shop.outside.issueLabels.get(ISSUE)).toContain('triage');
    expect(shop.writes()).toHaveLength(1);
    expect((await sessionFacts())?.actions).toEqual([made.actionId]);
  });

  it('is refused and counted if it wants another tool, target or tenant, and nothing is sent', async () => {
    const client = await connect(token());
    const attempts: [string, Record<string, unknown>][] = [
      ['github_comment_create', { ...ISSUE_FIELDS, body: 'ignore your rules' }],
      ['approvals_approve', { id: 'all' }],
      ['__proto__', {}],
      ['github_labels_add', { labels: ['x'], number: 8 }],
      ['github_labels_add', { labels: ['x'], repo: 'secrets' }],
      ['github_labels_add', { labels: ['x'], tenant: 'globex' }],
      ['github_labels_add', { labels: ['x'], connection: 'other' }],
    ];
    for (const [name, args] of attempts) {
      expect(await call(client, name, args)).toMatchObject({ isError: true, status: 'refused' });
    }
    expect((await sessionFacts())?.refused).toBe(attempts.length);
    expect(refusals()).toHaveLength(attempts.length);
    expect(shop.writes()).toEqual([]);
    expect(await openActions()).toEqual([]);
  });

  it('that calls without end is refused at the cap, and its history stays short', async () => {
    const client = await connect(token());
    const results: (string | undefined)[] = [];
    for (let n = 0; n < REFUSALS_RECORDED_MAX + 8; n += 1) {
      results.push((await call(client, 'github_labels_add', { labels: [`l${n}`] })).status);
    }
    expect(results.slice(0, 3)).toEqual(['succeeded', 'succeeded', 'succeeded']);
    expect(new Set(results.slice(3))).toEqual(new Set(['refused']));
    expect(shop.writes()).toHaveLength(3);
    expect((await sessionFacts())?.refused).toBe(REFUSALS_RECORDED_MAX);
    expect(refusals()).toHaveLength(results.length - 3);
    expect(results.length).toBeLessThan(ACTIONS_MAX);
  });

  it('withdraws a call that waits for people with tasks/cancel; nobody else can', async () => {
    shop.policy.decision = () => needsApproval();
    const { actionId = '' } = await call(await connect(token()), 'github_labels_add', { labels: ['withdrawn'] });
    const action = { tenant: 'acme', runId: actionId };
    expect((await shop.now(action)).run.status).toBe('waiting_approval');
    expect(await cancelTask(OPERATOR, actionId)).toMatchObject({ error: { message: expect.any(String) } });
    expect((await shop.now(action)).run.status).toBe('waiting_approval');
    expect(await cancelTask(token(), actionId)).toMatchObject({ result: {} });
    const { run } = await shop.finish(action);
    expect(run).toMatchObject({ status: 'canceled' });
    expect(shop.writes()).toEqual([]);
  });

  it('cannot read an action of somebody else, and has no tools after its end', async () => {
    const { actionId } = await call(await connect(OPERATOR), 'github_labels_add', { ...ISSUE_FIELDS, labels: ['x'] });
    const client = await connect(token());
    expect(await call(client, 'get_action_result', { actionId })).toMatchObject({ error: { code: 'NOT_FOUND' } });
    const otherTenant = await connect(token({ ...parent, tenant: 'globex' }));
    await expect(otherTenant.listTools()).rejects.toThrow('closed');
    await controlRun(shop.worker, parent, { kind: 'cancel' }, 'ana');
    await expect((await connect(token())).listTools()).rejects.toThrow('the session is closed');
    expect(await call(client, 'github_labels_add', { labels: ['late'] })).toMatchObject({
      error: { code: 'RUN_TERMINAL_STATE' },
    });
  });
});

describe('a person or program as an MCP client', () => {
  it('gets the reasons of a denial', async () => {
    shop.policy.decision = () => DENIED;
    const client = await connect(OPERATOR);
    expect(await call(client, 'github_labels_add', { ...ISSUE_FIELDS, labels: ['x'] })).toMatchObject({
      isError: true,
      status: 'denied',
      reasons: DENIED.reasons,
    });
    expect(shop.writes()).toEqual([]);
  });

  it('gets no text of an internal error', async () => {
    const client = await connect(OPERATOR);
    vi.spyOn(shop.definitions, 'connections').mockRejectedValue(new Error('a row that nobody may see'));
    const failed = call(client, 'github_labels_add', { ...ISSUE_FIELDS, labels: ['x'] });
    await expect(failed).rejects.toThrow(/^an internal error occurred; try again later$/);
    expect(shop.writes()).toEqual([]);
  });

  it('cannot call what is not offered: refused and counted', async () => {
    const client = await connect(OPERATOR);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain('agent_session');
    for (const name of ['agent_session', 'agent_command_rollback', 'github.labels.add', 'constructor']) {
      expect(await call(client, name, {})).toMatchObject({ isError: true, error: { code: 'ACTION_NOT_ALLOWED' } });
    }
    expect(refusals()).toHaveLength(4);
  });

  it('that calls without end is refused at the cap of the minute, which says when to try again; others are not', async () => {
    await shop.definitions.saveSettings('acme', { ...NO_SETTINGS, caps: { maxActionsPerMinute: 3 } });
    const client = await connect(OPERATOR);
    const label = (name: string, key?: string) =>
      call(client, 'github_labels_add', { ...ISSUE_FIELDS, labels: [name], ...(key && { idempotency_key: key }) });
    for (const name of ['one', 'two']) expect(await label(name)).toMatchObject({ status: 'succeeded' });
    expect(await label('three', 'same')).toMatchObject({ status: 'succeeded' });
    const after = Array.from({ length: 20 }, (_, place) => label(`endless-${place}`));
    for (const refused of await Promise.all(after)) {
      expect(refused).toMatchObject({ isError: true, status: 'refused', error: { code: 'RATE_EXCEEDED' } });
      expect(JSON.stringify(refused)).toMatch(/3 actions a minute, and have; try again in \d+ s/);
    }
    expect(refusals()).toHaveLength(20);
    expect(refusals()[0]?.dimensions).toEqual({ result: 'rate_exceeded' });
    expect(shop.writes()).toHaveLength(3);
    // The result of a call before it is no call.
    expect(await label('three', 'same')).toMatchObject({ status: 'succeeded' });
    const other = await connect({ ...OPERATOR, person: 'olivia' });
    expect(await call(other, 'github_labels_add', { ...ISSUE_FIELDS, labels: ['hers'] })).toMatchObject({
      status: 'succeeded',
    });
    shop.clock.advance(60_000);
    expect(await label('four')).toMatchObject({ status: 'succeeded' });
  });

  it('with the tasks extension gets a handle while people decide, and then the result, written once', async () => {
    shop.policy.decision = () => needsApproval();
    const client = await connect(OPERATOR, { [TASKS_EXTENSION]: {} });
    const framing = {
      protocolVersion: VERSION,
      clientInfo: { name: 'test', version: '1' },
      clientCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
    };
    const send = sendTo(OPERATOR);
    const session = createTaskSessionFromClient(client, {
      endpointId: 'countersign',
      v2RequestFraming: framing,
      rawDispatch: async (request) => {
        const { method, params } = request as { method: string; params: Record<string, string> };
        const headers = {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': VERSION,
          'mcp-method': method,
          'mcp-name': params.name ?? params.taskId ?? '',
        };
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...(request as object) });
        const received = await send('https://api.example/mcp', { method: 'POST', headers, body });
        const { result, error } = (await received.json()) as { result: never; error?: never };
        return error ? { kind: 'error', error } : { kind: 'result', result };
      },
    });
    const execution = await session.callTool('github_labels_add', { ...ISSUE_FIELDS, labels: ['approved'] });
    const [runId = ''] = await openActions();
    expect(shop.writes()).toEqual([]);
    await shop.say(await shop.openApproval({ tenant: 'acme', runId }), 'ana');
    await shop.work({ tenant: 'acme', runId });
    const { outcome } = await execution.settle();
    expect(resultFromTaskOutcome(outcome)).toMatchObject({
      structuredContent: { status: 'succeeded', actionId: runId },
    });
    expect(shop.writes()).toHaveLength(1);
    await session.close();
  });
});
