import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  Client,
  discoverOAuthProtectedResourceMetadata,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { byTest } from '../fakes/by-test.ts';
import { ACME_KEY, GLOBEX_KEY, isTerminal } from './harness/host-client.ts';
import { signInLocally } from './harness/sign-in.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

const ISSUE = { owner: 'octo-org', repo: 'payments', number: 7 };
const CLIENT = { name: 'test', version: '1' };
const OPERATOR_KEY = 'local-operator-key';

let host: TestHost;
const opened: Client[] = [];
beforeAll(async () => {
  host = await startTestHost();
  const dynamo = new DynamoDBClient(host.clientConfig());
  const forbid = 'forbid (principal, action, resource == Operation::"github.issue.close");';
  await new DynamoDefinitions(dynamo, host.tableName).savePolicies(
    'acme',
    { engine: 'cedar', files: { 'close.cedar': `@id("no-close")\n@reason("issues stay open")\n${forbid}` } },
    byTest(),
  );
  dynamo.destroy();
});
afterAll(async () => {
  for (const client of opened) await client.close();
  await host.stop();
});

type Mode = 'legacy' | { pin: string };
const MODERN: Mode = { pin: '2026-07-28' };

async function connected(client: Client, transport: Parameters<Client['connect']>[0]): Promise<Client> {
  await client.connect(transport);
  opened.push(client);
  return client;
}

const clientOf = (mode: Mode) => new Client(CLIENT, { versionNegotiation: { mode } });

const overHttp = (headers: Record<string, string>, mode: Mode = MODERN): Promise<Client> =>
  connected(
    clientOf(mode),
    new StreamableHTTPClientTransport(new URL(`${host.url}/mcp`), { requestInit: { headers } }),
  );

function overStdio(key: string, mode: Mode): Promise<Client> {
  const args = ['bin/countersign.mjs', 'mcp', '--url', host.url];
  const env = { PATH: process.env.PATH ?? '', HOME: host.dataFolder, COUNTERSIGN_API_KEY: key };
  return connected(clientOf(mode), new StdioClientTransport({ command: process.execPath, args, env }));
}

interface Shown {
  status: string;
  actionId: string;
  approval?: { url: string };
  reasons?: string[];
  error?: { code: string; message: string };
}

async function call(client: Client, name: string, args: Record<string, unknown>) {
  const { structuredContent, isError = false } = await client.callTool({ name, arguments: args });
  return { isError, ...(structuredContent as unknown as Shown) };
}

const writesOf = async (text: string) =>
  (await host.calls({ system: 'github' })).filter(
    ({ method, body }) => method !== 'GET' && JSON.stringify(body ?? '').includes(`"${text}"`),
  );

describe.each([
  ['HTTP and the current protocol', () => overHttp({ 'x-api-key': OPERATOR_KEY })],
  ['HTTP and the protocol of 2025', () => overHttp({ 'x-api-key': OPERATOR_KEY }, 'legacy')],
  ['stdio and the current protocol', () => overStdio(OPERATOR_KEY, MODERN)],
  ['stdio and the protocol of 2025', () => overStdio(OPERATOR_KEY, 'legacy')],
])('over %s', (way, connect) => {
  let client: Client;
  beforeAll(async () => {
    client = await connect();
  });
  const label = way.replaceAll(' ', '-');

  it('the tools are those of the connections of the tenant, with their input and hints', async () => {
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['github_labels_add', 'servicenow_incident_get', 'get_action_result']),
    );
    expect(tools.find(({ name }) => name === 'github_labels_add')).toMatchObject({
      inputSchema: { type: 'object', required: ['owner', 'repo', 'number', 'labels'] },
      annotations: { readOnlyHint: false, destructiveHint: false },
    });
    expect(client.getInstructions()).toContain('Policy decides');
  });

  it('an allowed write is made once, also if the call is repeated', async () => {
    const args = { ...ISSUE, labels: [label], idempotency_key: label };
    const first = await call(client, 'github_labels_add', args);
    expect(first).toMatchObject({ isError: false, status: 'succeeded', target: 'github:octo-org/payments#7' });
    expect(await call(client, 'github_labels_add', args)).toEqual(first);
    expect(await writesOf(label)).toHaveLength(1);
    const other = { ...args, labels: ['another'] };
    expect(await call(client, 'github_labels_add', other)).toMatchObject({ error: { code: 'IDEMPOTENCY_CONFLICT' } });
    expect(await writesOf('another')).toEqual([]);
  });

  it('a write that people must approve is pending with a link; later it is read, and made once', async () => {
    const { owner, repo } = ISSUE;
    const args = { owner, repo, workflow: 'deploy.yml', ref: `to-${label}` };
    const waiting = await call(client, 'github_workflow_dispatch', args);
    expect(waiting).toMatchObject({ isError: false, status: 'waiting_approval' });
    expect(waiting.approval?.url).toMatch(new RegExp(`^${host.url}/approvals/${waiting.actionId}`));
    expect(await writesOf(args.ref)).toEqual([]);
    await host.approve(waiting.actionId);
    await host.waitForRun(waiting.actionId, isTerminal);
    const { actionId } = waiting;
    expect(await call(client, 'get_action_result', { actionId })).toMatchObject({ status: 'succeeded', actionId });
    expect(await call(client, 'get_action_result', { actionId })).toMatchObject({ status: 'succeeded', actionId });
    expect(await writesOf(args.ref)).toHaveLength(1);
  });

  it('a denied write says why, and nothing is sent', async () => {
    expect(await call(client, 'github_issue_close', ISSUE)).toMatchObject({
      isError: true,
      status: 'denied',
      reasons: ['issues stay open'],
      error: { code: 'POLICY_DENIED' },
    });
    expect(await writesOf('closed')).toEqual([]);
  });
});

describe('the MCP server as an OAuth resource', () => {
  const post = (headers: Record<string, string>, message: object = { jsonrpc: '2.0', id: 1, method: 'tools/list' }) =>
    fetch(`${host.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(message),
    });

  it('a request without a credential gets a 401 that leads to the issuer of the stage', async () => {
    const refused = await post({});
    expect(refused.status).toBe(401);
    const [, url = ''] =
      /^Bearer resource_metadata="([^"]+)"$/.exec(refused.headers.get('www-authenticate') ?? '') ?? [];
    expect(url).toBe(`${host.url}/.well-known/oauth-protected-resource/mcp`);
    const found = await discoverOAuthProtectedResourceMetadata(`${host.url}/mcp`);
    expect(await (await fetch(url)).json()).toEqual(found);
    expect(found).toMatchObject({ resource: `${host.url}/mcp`, authorization_servers: [`${host.url}/_oidc`] });
    expect(found.scopes_supported).toContain('tool:github.labels.add');
    for (const authorization of ['Bearer cst_e30.forged', 'Bearer x.y.z']) {
      expect((await post({ authorization })).status).toBe(401);
    }
  });

  it('a token with scopes is for these tools only, and for no other route', async () => {
    const { id_token: token } = await signInLocally(
      host.url,
      'olivia',
      'countersign-acme',
      'openid tool:github.labels.add',
    );
    const authorization = `Bearer ${token}`;
    const client = await overHttp({ authorization });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['github_labels_add', 'get_action_result']);
    expect(await call(client, 'github_labels_add', { ...ISSUE, labels: ['scoped'] })).toMatchObject({
      status: 'succeeded',
    });
    const params = { name: 'github_comment_create', arguments: { ...ISSUE, body: 'out of scope' } };
    const refused = await post({ authorization }, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    expect(refused.status).toBe(403);
    expect(refused.headers.get('www-authenticate')).toContain(
      'error="insufficient_scope", scope="tool:github.comment.create"',
    );
    const body = JSON.stringify({ tool: 'github.comment.create', input: params.arguments });
    for (const path of ['/api/v1/actions', '/api/v1/api-keys']) {
      expect((await host.request('POST', path, { headers: { authorization }, body })).status).toBe(403);
    }
    expect(await writesOf('out of scope')).toEqual([]);
  });

  it('another tenant sees neither the connections nor the actions of this one', async () => {
    const acme = await overHttp({ 'x-api-key': ACME_KEY });
    const { actionId } = await call(acme, 'github_labels_add', { ...ISSUE, labels: ['of-acme'] });
    const globex = await overHttp({ 'x-api-key': GLOBEX_KEY });
    expect(await call(globex, 'get_action_result', { actionId })).toMatchObject({
      isError: true,
      error: { code: 'NOT_FOUND' },
    });
    expect(await call(await overHttp({ 'x-api-key': OPERATOR_KEY }), 'get_action_result', { actionId })).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
  });

  it('streams, large messages and people who may not start runs are refused', async () => {
    expect((await post({ 'x-api-key': 'local-approver-key' })).status).toBe(403);
    const large = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'x', arguments: { x: 'x'.repeat(600_000) } },
    };
    expect((await post({ 'x-api-key': ACME_KEY }, large)).status).toBe(413);
    expect((await fetch(`${host.url}/mcp`, { headers: { 'x-api-key': ACME_KEY } })).status).toBe(404);
  });
});
