import { createPrivateKey, createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DescribeExecutionCommand, SFNClient } from '@aws-sdk/client-sfn';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AssignmentStatement } from '../../lambdas/agents/protocol.ts';
import { ACTIONS } from '../../lambdas/slack/card/approval-card.ts';
import { onTerminal, piped } from '../cli/command-line.ts';
import { synthesized } from '../infrastructure/synthesized.ts';
import { StoryAgent } from '../local/harness/agent-story.ts';
import { Approvers, SLACK } from '../local/harness/approvers.ts';
import { incident } from '../local/harness/deliveries.ts';
import { isTerminal, type ShownRun } from '../local/harness/host-client.ts';
import { labelWrites, triageWrites } from '../local/harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { readFixture, restore } from './fixture.ts';

/** What a host of the previous release left when it was stopped; `write-fixture.ts` made it. */
const fixture = readFixture();
const isSealed = (run: ShownRun) => isTerminal(run) && run.evidence !== null;

let dataFolder: string;
let host: TestHost;
beforeAll(async () => {
  dataFolder = mkdtempSync(join(tmpdir(), 'countersign-upgrade-'));
  await restore(fixture, dataFolder, synthesized('local').stack);
  host = await startTestHost({ dataFolder });
});
afterAll(async () => {
  await host?.stop();
  rmSync(dataFolder, { recursive: true, force: true });
});

const named = (name: string) => fixture.names[name] ?? expect.fail(`the fixture has no ${name}`);

/** Downloads the bundle and verifies it offline, as an auditor does. */
async function verified(runId: string): Promise<string> {
  const [bundle, keys] = [join(dataFolder, `${runId}.json`), join(dataFolder, 'keys.txt')];
  expect(await piped(['evidence', 'get', runId, '--out', bundle, '--url', host.url])).toMatchObject({ exitCode: 0 });
  writeFileSync(keys, await (await fetch(`${host.url}/.well-known/countersign-keys.json`)).text());
  const { stdout, exitCode } = await onTerminal(200, ['evidence', 'verify', bundle, '--key', keys]);
  expect(exitCode, stdout).toBe(0);
  return stdout;
}

// First, because the lease of the command ends a minute after the last request of its agent.
it('a command that began before the upgrade ends after it, with all of its output', async () => {
  const privateKey = createPrivateKey(named('agentKey'));
  const agent = new StoryAgent(host, { privateKey, publicKey: createPublicKey(privateKey) });
  await agent.continue(named('agentId'), named('bootId'));
  const assignment = AssignmentStatement.parse(JSON.parse(named('assignment')));
  await agent.print(assignment, 1, 'after the upgrade\n');
  expect(await agent.complete(assignment, 2)).toEqual({ result: 'accepted' });
  expect((await host.waitForRun(named('command'))).status).toBe('succeeded');
  const { body } = await host.api<{ chunks: { data: string }[] }>(`/runs/${named('command')}/steps/restart/output`);
  expect(body.chunks.map(({ data }) => data).join('')).toBe('before the upgrade\nafter the upgrade\n');
  expect(await verified(named('command'))).toContain('succeeded');
});

it('settings, API keys, agents and all runs of the previous release are listed', async () => {
  expect((await host.api('/settings')).body).toMatchObject({
    approvalsChannel: '#approvals',
    caps: { maxConcurrency: 40 },
    features: { 'worker_orchestration.enabled': true },
  });
  expect((await host.api('/me', named('machineKey'))).body).toMatchObject({ role: 'operator' });
  const { body } = await host.api<{ agents: { agentId: string }[] }>('/agents');
  expect(JSON.stringify(body)).toContain(named('agentId'));
  const runIds = (await host.allRuns()).map(({ runId }) => runId);
  const started = ['sealed', 'waiting', 'approval', 'slackApproval', 'crashed', 'unsealed', 'command'].map(named);
  expect(runIds.sort()).toEqual(started.sort());
});

it('evidence of the previous release verifies', async () => {
  expect(await verified(named('sealed'))).toContain('valid: acme/');
});

it('an approval that was requested before the upgrade is decided over the API, and each write is made once', async () => {
  await host.approve(named('approval'));
  const run = await host.waitForRun(named('approval'));
  expect(run.status).toBe('succeeded');
  expect(triageWrites(await host.calls(), incident('upgrade approval'))).toEqual({ assign: 1, note: 1, post: 1 });
  expect(await verified(run.runId)).toContain('succeeded');
});

it('a card that was posted before the upgrade is decided in Slack, and its execution ends', async () => {
  const approvers = new Approvers(host);
  const approval = await approvers.waiting(named('slackApproval'));
  await approvers.click(SLACK.ben, approval, ACTIONS.approve);
  const run = await host.waitForRun(named('slackApproval'));
  expect(run.status).toBe('succeeded');
  expect(triageWrites(await host.calls(), incident('upgrade in Slack'))).toEqual({ assign: 1, note: 1, post: 1 });
  expect(await verified(run.runId)).toContain('succeeded');
});

it('a run that waits for a signal continues with it', async () => {
  const before = labelWrites(await host.calls(), 1);
  const { status, text } = await host.command(`/runs/${named('waiting')}/signal`, { event: 'looked-after' });
  expect(status, text).toBe(200);
  expect((await host.waitForRun(named('waiting'))).status).toBe('succeeded');
  expect(labelWrites(await host.calls(), 1)).toBe(before);
  expect(await verified(named('waiting'))).toContain('succeeded');
});

it('a write whose outcome was lost before the upgrade is found and not repeated; what was not sealed is sealed', async () => {
  const ids = [named('crashed'), named('unsealed')];
  const runs = await host.letTimePassUntil(ids, isSealed);
  expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
  const { note, post } = triageWrites(await host.calls(), incident('upgrade crashed'));
  expect({ note, post }).toEqual({ note: 1, post: 1 });
  expect(labelWrites(await host.calls(), 102)).toBe(1);
  for (const id of ids) expect(await verified(id)).toContain('succeeded');
});

it('every execution that the previous release started has ended', async () => {
  const stored = fixture.databases['step-functions.sqlite']?.find(({ name }) => name === 'executions')?.rows ?? [];
  const running = stored.filter(({ status }) => status === 'RUNNING').map(({ arn }) => String(arn));
  expect(running.length).toBeGreaterThanOrEqual(2);
  const client = new SFNClient(host.clientConfig());
  for (const executionArn of running) {
    const { status } = await client.send(new DescribeExecutionCommand({ executionArn }));
    expect(status).toBe('SUCCEEDED');
  }
  client.destroy();
});
