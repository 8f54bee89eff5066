import { afterAll, beforeAll, expect, it } from 'vitest';
import { RuntimeRefused } from '../../agent/runtime-client.ts';
import { ask, enrolledAgent, publishCommand, type StoryAgent, startCommand } from './harness/agent-story.ts';
import { GLOBEX_KEY } from './harness/host-client.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

const DAY_MS = 24 * 3_600_000;

interface Output {
  chunks: { data: string }[];
  complete: boolean;
  total?: { sha256?: string; complete: boolean };
}

let host: TestHost;
let agent: StoryAgent;
beforeAll(async () => {
  host = await startTestHost();
  await publishCommand(host);
  agent = await enrolledAgent(host, 'one');
});
afterAll(() => host.stop());

const output = (runId: string, since = 0) =>
  ask<Output>(host, 'GET', `/runs/${runId}/steps/restart/output?since=${since}`);
const text = ({ chunks }: Output) => chunks.map(({ data }) => data).join('');

it('a command runs over the wire: its output is read live, and after a week from S3', async () => {
  const runId = await startCommand(host);
  const statement = await agent.take();
  await agent.print(statement, 0, 'up 3 days\n');
  expect(await output(runId)).toMatchObject({ chunks: [{ data: 'up 3 days\n' }], complete: false });
  expect(await agent.complete(statement, 1)).toEqual({ result: 'accepted' });
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  expect(await output(runId)).toMatchObject({ complete: true, total: { complete: true } });
  await host.advance(8 * DAY_MS);
  const later = await output(runId);
  expect(text(later)).toBe('up 3 days\n');
  expect(later.total?.sha256).toMatch(/^[0-9a-f]{64}$/);
});

it('output that S3 did not take when the command completed is written later', async () => {
  await agent.registerAgain();
  await host.fault({ function: 'AgentApiWork', service: 's3', operation: 'PutObject', times: 'always', kind: 'error' });
  const runId = await startCommand(host);
  const statement = await agent.take();
  await agent.print(statement, 0, 'once\n');
  expect(await agent.complete(statement, 1)).toEqual({ result: 'accepted' });
  await host.clearFaults();
  await host.waitForRun(runId);
  await host.advance(60_000);
  await host.sweep();
  await host.idle();
  await host.advance(8 * DAY_MS);
  expect(text(await output(runId))).toBe('once\n');
});

it('an API that fails in the middle loses neither output nor result', async () => {
  await agent.registerAgain();
  const runId = await startCommand(host);
  const statement = await agent.take();
  const fault = {
    function: 'AgentApiWork',
    service: 'dynamodb',
    operation: 'PutItem',
    times: 1,
    kind: 'error',
  } as const;
  await host.fault(fault);
  await agent.print(statement, 0, '1\n').catch(() => undefined);
  expect(await agent.print(statement, 0, '1\n')).toMatchObject({ next_seq: 1 });
  await host.fault({ ...fault, operation: 'TransactWriteItems', kind: 'crash_after' });
  await agent.complete(statement, 1).catch(() => undefined);
  expect(['accepted', 'duplicate']).toContain((await agent.complete(statement, 1)).result);
  // The function ended before it could send the step message, so the sweeper sends it.
  await host.letTimePassUntil([runId], ({ status }) => status === 'succeeded');
  expect(text(await output(runId))).toBe('1\n');
});

it('output of a command whose agent was lost is stored, too', async () => {
  await agent.registerAgain();
  const runId = await startCommand(host);
  const statement = await agent.take();
  await agent.print(statement, 0, 'half of i');
  await host.advance(31_000);
  expect((await host.waitForRun(runId)).status).toBe('needs_human');
  await host.advance(10 * 60_000);
  await host.sweep();
  await host.idle();
  await host.advance(8 * DAY_MS);
  const stored = await output(runId);
  expect(text(stored)).toBe('half of i');
  expect(stored.total).toMatchObject({ complete: false });
});

it('a second process replaces the first, and an agent that was removed is refused at once', async () => {
  await agent.registerAgain();
  const first = agent.client;
  agent.boot();
  await agent.register();
  const old = first.drain({}).catch((error: unknown) => error);
  expect(await old).toMatchObject({ status: 409, code: 'AGENT_IDENTITY_IN_USE' });
  await expect(ask(host, 'GET', '/agents/one', { key: GLOBEX_KEY })).rejects.toThrow('404');
  await ask(host, 'POST', '/agents/one/drain', { body: { reason: 'patches' } });
  expect(await agent.sync()).toMatchObject({ drain: true, state: 'draining' });
  await ask(host, 'POST', '/agents/one/resume');
  expect(await agent.sync()).toMatchObject({ drain: false });
  await ask(host, 'DELETE', '/agents/one');
  const removed = await agent.sync().catch((error: unknown) => error);
  expect(removed).toBeInstanceOf(RuntimeRefused);
  expect(removed).toMatchObject({ status: 401, code: 'SIGNATURE_INVALID' });
});
