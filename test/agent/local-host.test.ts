import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { enrolAgent } from '../../agent/enrol.ts';
import { machine, type System } from '../../agent/system.ts';
import { SYNC_INTERVAL_MS, SYNC_WHILE_RUNNING_MS, SYNC_WITHOUT_SOCKET_MS } from '../../lambdas/agents/agent-terms.ts';
import { Automation } from '../../lambdas/pipeline/definitions.ts';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { Assembly } from '../../local/template/synthesize.ts';
import { byTest } from '../fakes/by-test.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import type { ShownRun } from '../local/harness/host-client.ts';
import { asks } from '../local/harness/session-story.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { runAgent } from './agent-under-test.ts';
import { CuttableProxy } from './cuttable-proxy.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const folder = temporaryFolder();
// For the user of the commands, if this process is root.
chmodSync(folder.path, 0o777);
const dir = join(folder.path, 'agent');
const secretIdFile = join(folder.path, 'secret-id');
const processes: ChildProcess[] = [];
/** The sockets of the agent go through it. */
const proxy = new CuttableProxy();
let host: TestHost;

beforeAll(async () => {
  await proxy.start();
  host = await startTestHost({ change: withSocketsThroughProxy });
  proxy.target = Number(new URL(host.url).port);
  await publishScript();
  const wanted = { name: 'demo', environments: ['dev'], networkSegment: null };
  const { status, body, text } = await host.command<{ token: string }>('/enrolment-tokens', wanted);
  if (status >= 300) throw new Error(`no enrolment token: ${text}`);
  const enrolment = { url: host.url, token: body.token, dir, fingerprints: [], version: '0' };
  await enrolAgent(enrolment, machine);
  writeFileSync(secretIdFile, 'local-secret-id', { mode: 0o600 });
  const vault = { address: `${host.url}/_sim/vault`, auth: { appRole: { roleId: 'agent', secretIdFile } } };
  const orders = { vault: { database: 'orders-maintenance' }, env: { username: 'PGUSER', password: 'PGPASSWORD' } };
  // JSON is YAML, too.
  const config = { capabilities: ['scripts'], vault, credentials: { orders } };
  writeFileSync(join(dir, 'agent.yaml'), JSON.stringify(config), { mode: 0o600 });
});
afterEach(async () => {
  for (const each of processes.splice(0)) if (isRunning(each)) await ended(each, 'SIGKILL');
});
afterAll(async () => {
  await proxy.stop();
  await host.stop();
  folder.remove();
});

function withSocketsThroughProxy(assembly: Assembly): Assembly {
  const changed = { ...assembly, template: structuredClone(assembly.template) };
  const [[, agentApi] = [], ...others] = Object.entries(changed.template.Resources ?? {}).filter(
    ([id, { Type }]) => Type === 'AWS::Lambda::Function' && id.startsWith('AgentApiEnrol'),
  );
  const { Variables } = (agentApi?.Properties?.Environment ?? {}) as { Variables?: Record<string, unknown> };
  if (Variables?.LIVE_URL === undefined || others.length > 0) throw new Error('no function names the socket to agents');
  Variables.LIVE_URL = `ws://127.0.0.1:${proxy.port}/live`;
  return changed;
}

/** A workflow that runs the script of its input with `sh`, through an agent. */
async function publishScript(): Promise<void> {
  const client = new DynamoDBClient(host.clientConfig());
  const definitions = new DynamoDefinitions(client, host.tableName);
  const command = {
    command: '/bin/sh',
    args: ['-c', '{% inputs.script %}'],
    environment: 'dev',
    capabilities: ['scripts'],
  };
  const step = { id: 'run', tool: 'agent.command', with: { ...command, credentials: ['orders'], timeoutSeconds: 120 } };
  const inputs = { script: { type: 'string', required: true } };
  const workflow = Workflow.parse({ name: 'run-script', inputs, steps: [step] });
  await definitions.publishWorkflow('acme', workflow, 1, byTest());
  const automation = {
    name: 'run-script',
    trigger: { source: 'manual' },
    workflow: { name: 'run-script', version: 1 },
  };
  const mapped = Automation.parse({ ...automation, inputs: { script: 'true' } });
  await definitions.saveAutomation('acme', { ...mapped, workflow: automation.workflow }, byTest());
  client.destroy();
}

function startAgent(): ChildProcess {
  const args = [join(ROOT, 'bin/countersign.ts'), 'agent', 'run', '--dir', dir];
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  processes.push(child);
  return child;
}

/** A process that a signal ended has no exit code. */
const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  const exit = once(child, 'exit');
  child.kill(signal);
  const [code] = await exit;
  return code as number | null;
}

/** Starts a run of the script, as Olivia, and approves its command as somebody else. */
async function approved(script: string): Promise<string> {
  const { status, body, text } = await host.command<{ runId: string }>('/automations/run-script/run', {
    inputs: { script },
  });
  if (status >= 300) throw new Error(`the run was refused: ${text}`);
  await host.approve(body.runId);
  return body.runId;
}

const finished = ({ status }: ShownRun) => ['succeeded', 'failed_terminal', 'needs_human', 'canceled'].includes(status);
const lines = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').length : 0);

it('acceptance: an approved command runs once on the host of the agent, with a credential that is audited and revoked', async () => {
  const mark = join(folder.path, 'ran');
  const agent = startAgent();
  const runId = await approved(`echo "$PGUSER" >> ${mark}; echo "password $PGPASSWORD"`);
  const run = await host.waitForRun(runId, finished);
  expect(run.status).toBe('succeeded');
  expect(lines(mark)).toBe(1);
  const [receipt] = run.receipts as unknown as {
    command: { exitCode: number; credentialsUsed: { auditId: string }[] };
  }[];
  expect(receipt?.command).toMatchObject({
    exitCode: 0,
    credentialsUsed: [{ id: 'orders', revoked: true, ttlSeconds: 120 }],
  });
  const audit = await host.request<{ entries: { request: { id: string; path: string } }[] }>(
    'GET',
    '/_sim/vault/v1/_audit',
    {
      headers: { 'x-vault-token': 'local-root' },
    },
  );
  const auditId = receipt?.command.credentialsUsed[0]?.auditId;
  const entry = audit.body.entries.find(({ request }) => request.id === auditId);
  expect(entry?.request.path).toBe('database/creds/orders-maintenance');
  expect(await ended(agent, 'SIGTERM')).toBe(0);
});

/** A session: reads its prompt, proposes a label, waits for the outcome, and completes. It also prints its token. */
const SESSION = `
  const { data } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  const send = async (method, url, body) => {
    const headers = { authorization: 'Bearer ' + data.token, 'content-type': 'application/json', 'idempotency-key': 'one' };
    return (await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })).json();
  };
  (async () => {
    console.log('token', data.token);
    let action = await send('POST', data.urls.actions, { tool: 'github.labels.add', input: { labels: ['by-agent'] } });
    while (action.status === 'pending') action = await send('GET', data.urls.actions + '/' + action.actionId);
    const summary = action.tool + ': ' + action.status;
    await send('POST', data.urls.complete, { completion_id: data.completion_id, outcome: 'succeeded', summary });
  })();
`;

it('6.4, 6.5 a session on an agent reads its prompt, acts under policy and completes; its token is in no output', async () => {
  const save = (path: string, body: object) => asks(host, 'PUT', path, body);
  const place = { provider: 'agent', environment: 'dev', capabilities: ['scripts'] };
  await save('/configurations/on-agent', {
    session: { ...place, command: process.execPath, args: ['-e', SESSION] },
    instructions: 'Be brief.',
  });
  await save('/automations/on-agent', {
    triggers: [{ source: 'manual' }],
    instructions: 'Label the issue.',
    session: { actions: [{ tool: 'github.labels.add', with: { owner: 'octo-org', repo: 'payments', number: 7 } }] },
    configuration: { strategy: 'fixed', default: 'on-agent' },
  });
  const agent = startAgent();
  const { runId } = await asks<{ runId: string }>(host, 'POST', '/automations/on-agent/run', {});
  const waiting = await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
  const { session } = waiting.steps[0] as unknown as { session: { sessionId: string } };
  // Policy asks a person before any command with medium risk.
  await host.approve(session.sessionId);
  const run = await host.waitForRun(runId, finished);
  expect(run.status).toBe('succeeded');
  expect(run.steps[0]).toMatchObject({ output: { summary: 'github.labels.add: succeeded' } });
  expect((await host.waitForRun(session.sessionId, finished)).status).toBe('succeeded');
  const output = await host.api(`/runs/${session.sessionId}/steps/0/output`);
  expect(output.text).toContain('token ');
  expect(output.text).not.toContain('cst_');
  expect(await ended(agent, 'SIGTERM')).toBe(0);
});

it('a command whose agent is killed is lost, and no process runs it again', async () => {
  const mark = join(folder.path, 'killed');
  const agent = startAgent();
  const runId = await approved(`echo run >> ${mark}; sleep 600`);
  await host.eventually('the command runs', async () => lines(mark) || undefined);
  await ended(agent, 'SIGKILL');
  const next = startAgent();
  const run = await host.waitForRun(runId, finished);
  expect(run.status).toBe('needs_human');
  expect(run.steps[0]).toMatchObject({ error: { code: 'AGENT_LOST' } });
  expect(lines(mark)).toBe(1);
  expect(await ended(next, 'SIGTERM')).toBe(0);
});

it('a hint is enough, without polls: for an assignment and for a cancel; with the socket cut, polls take the next one', async () => {
  const pauses: number[] = [];
  // The pause of an agent with a socket ends only if something wakes the agent.
  const withoutPolls: System = {
    ...machine,
    sleep: (ms, until) => {
      pauses.push(ms);
      const isPoll = ms === SYNC_INTERVAL_MS || ms === SYNC_WHILE_RUNNING_MS;
      return machine.sleep(isPoll ? 2 ** 31 - 1 : ms, until);
    },
  };
  const agent = await runAgent(dir, withoutPolls);
  const waits = (ms: number) => host.eventually(`a pause of ${ms} ms`, async () => pauses.includes(ms) || undefined);
  await waits(SYNC_INTERVAL_MS);
  pauses.splice(0);
  const first = join(folder.path, 'hinted');
  const hinted = await host.waitForRun(await approved(`echo run >> ${first}`), finished);
  expect([hinted.status, lines(first)]).toEqual(['succeeded', 1]);
  expect(pauses).not.toContain(SYNC_WITHOUT_SOCKET_MS);

  const canceled = join(folder.path, 'canceled');
  const runId = await approved(`echo run >> ${canceled}; exec sleep 100`);
  await host.eventually('the command runs', async () => lines(canceled) || undefined);
  await waits(SYNC_WHILE_RUNNING_MS);
  pauses.splice(0);
  await host.command(`/runs/${runId}/cancel`, {});
  const stopped = await host.waitForRun(runId, finished);
  expect(stopped.status).toBe('canceled');
  expect(stopped.steps[0]).toMatchObject({ error: { code: 'COMMAND_CANCELED' } });

  await waits(SYNC_INTERVAL_MS);
  pauses.splice(0);
  proxy.cut();
  await waits(SYNC_WITHOUT_SOCKET_MS);
  const second = join(folder.path, 'polled');
  const polled = await host.waitForRun(await approved(`echo run >> ${second}`), finished);
  expect([polled.status, lines(second)]).toEqual(['succeeded', 1]);
  expect(await agent.stop()).toBe('drained');
});
