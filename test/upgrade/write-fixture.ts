/**
 * Writes the fixture of the upgrade test: drives a host of the previous release into the states in which an upgrade can find
 * runs, stops it, and stores what it left. Not a part of the tests; run it by hand when there is a new release:
 *
 *     git worktree add ../previous 5c6ec54 && (cd ../previous && npm ci)
 *     node test/upgrade/write-fixture.ts ../previous
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AssignmentStatement } from '../../lambdas/agents/protocol.ts';
import type { enrolledAgent, StoryAgent } from '../local/harness/agent-story.ts';
import type { HostClient } from '../local/harness/host-client.ts';
import { saveFixture } from './fixture.ts';

const previous = resolve(process.argv[2] ?? '');
/** From the previous release, at the paths that it has there: later releases have those of test/local in test/local/harness. */
const load = (path: string) => import(pathToFileURL(join(previous, path)).href);

const { startHost } = (await load('local/host/host.ts')) as typeof import('../../local/host/host.ts');
const clients = (await load('test/local/host-client.ts')) as typeof import('../local/harness/host-client.ts');
const deliveries = (await load('test/local/deliveries.ts')) as typeof import('../local/harness/deliveries.ts');
const agents = (await load('test/local/agent-story.ts')) as typeof import('../local/harness/agent-story.ts');
/** The helpers of agents only use what every client has. */
type AgentHost = Parameters<typeof enrolledAgent>[0];

const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-previous-'));
const host = await startHost({ port: 0, dataFolder, log: () => undefined });
const client = new clients.HostClient(host.url);
const names: Record<string, string> = {};

await changeDefinitions(client);
// Before approvals are requested: policies that change make them stale.
await agents.publishCommand(client as AgentHost);
names.sealed = await client.openIssue(101);
await client.waitForRun(names.sealed);
names.waiting = await reopenIssue(client);
await client.waitForRun(names.waiting, ({ status }) => status === 'waiting_external');
names.approval = await client.fileIncident(deliveries.incident('upgrade approval'));
names.slackApproval = await client.fileIncident(deliveries.incident('upgrade in Slack'));
for (const id of [names.approval, names.slackApproval]) {
  await client.waitForRun(id, ({ status }) => status === 'waiting_approval');
}
names.crashed = await crashAfterWrite(client);
names.unsealed = await endWithoutSeal(client);
const { agent, assignment } = await startCommand(client);
names.command = assignment.session_id;
names.agentId = agent.agentId;
names.bootId = agent.bootId;
names.agentKey = agent.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
names.assignment = JSON.stringify(assignment);

const stoppedAtMs = await client.now();
await host.stop();
const release = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: previous, encoding: 'utf8' }).trim();
const bytes = saveFixture(dataFolder, { release, stoppedAtMs, names });
rmSync(dataFolder, { recursive: true, force: true });
console.log(`${bytes} bytes, of release ${release}`, names);

async function put(to: HostClient, method: string, path: string, body: unknown): Promise<Record<string, string>> {
  const answer = await to.request<Record<string, string>>(method, `/api/v1${path}`, {
    headers: { 'x-api-key': clients.ACME_KEY },
    body: JSON.stringify(body),
  });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.body;
}

async function changeDefinitions(to: HostClient): Promise<void> {
  const features = { 'worker_orchestration.enabled': true };
  await put(to, 'PUT', '/settings', { caps: { maxConcurrency: 40 }, approvalsChannel: '#approvals', features });
  const { key = '' } = await put(to, 'POST', '/api-keys', { name: 'pipeline', machine: true, role: 'operator' });
  names.machineKey = key;
}

/** Its run labels the issue, and then waits for a signal. */
async function reopenIssue(to: HostClient): Promise<string> {
  const event = JSON.parse(readFileSync(join(previous, 'events', 'github-issue-reopened.json'), 'utf8'));
  const { body, text } = await to.sendGithub(event.body ?? event);
  return body.runIds?.[0] ?? fail(text);
}

/** The worker has written the note and not committed it: the next one finds an intent and an expired lease. */
async function crashAfterWrite(to: HostClient): Promise<string> {
  const runId = await to.fileIncident(deliveries.incident('upgrade crashed'));
  await to.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  await to.fault({ function: 'WorkerStep', operation: 'TransactWriteItems', nth: 3, kind: 'crash_before' });
  await to.approve(runId);
  await to.eventually('the crash', async () => ((await to.faults()).some(({ hits }) => hits > 0) ? true : undefined));
  await to.clearFaults();
  return runId;
}

/** Its evidence cannot be stored, so the outbox has an entry. */
async function endWithoutSeal(to: HostClient): Promise<string> {
  await to.fault({ function: 'EvidenceVaultSeal', service: 's3', times: 'always', kind: 'error' });
  const runId = await to.openIssue(102);
  await to.waitForRun(runId, clients.isTerminal);
  await to.eventually('a failed seal', async () =>
    (await to.faults()).some(({ hits }) => hits > 0) ? true : undefined,
  );
  return runId;
}

/** A command that its agent has begun and not ended. */
async function startCommand(to: HostClient): Promise<{ agent: StoryAgent; assignment: AssignmentStatement }> {
  const agent = await agents.enrolledAgent(to as AgentHost, 'upgraded');
  await agents.startCommand(to as AgentHost);
  const assignment = await agent.take();
  await agent.print(assignment, 0, 'before the upgrade\n');
  return { agent, assignment };
}

function fail(text: string): never {
  throw new Error(text);
}
