import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Assembly, synthesize } from '../../local/template/synthesize.ts';
import { startCountersign } from '../cli/command-line.ts';
import { temporaryFolder } from './cloud/wire.ts';
import { enrolledAgent } from './harness/agent-story.ts';
import { incident } from './harness/deliveries.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

const folder = temporaryFolder();
let assembly: Assembly;
let host: TestHost;

beforeAll(async () => {
  const cdk = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'cdk.json'), 'utf8'));
  const { local, ...stages } = cdk.context.stages;
  const changed = { ...stages, local: { ...local, liveFeed: false } };
  assembly = await synthesize(join(folder.path, 'assembly'), 'local', changed);
  host = await startTestHost({ change: () => assembly });
});
afterAll(async () => {
  await host?.stop();
  folder.remove();
});

it('a stage with "liveFeed": false has no WebSocket API, no stream and no function of the feed', () => {
  const resources = Object.entries(assembly.template.Resources ?? {});
  expect(resources.length).toBeGreaterThan(200);
  expect(resources.filter(([id]) => id.startsWith('LiveFeed'))).toEqual([]);
  const text = JSON.stringify(resources);
  for (const part of ['WEBSOCKET', 'StreamSpecification', 'LIVE_URL', 'LIVE_CALLBACK_URL', 'execute-api:Manage'])
    expect(text).not.toContain(part);
});

it('runs watch polls there: it shows the run up to its end, and agents are named no socket', async () => {
  const runId = await host.fileIncident(incident('watched without the feed'));
  await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  expect((await host.command('/live/ticket', {})).status).toBe(404);
  const watch = startCountersign(['runs', 'watch', runId, '--url', host.url]);
  await watch.hasPrinted('approval');
  await host.approve(runId);
  const { exitCode, stdout } = await watch.ended;
  expect(exitCode).toBe(0);
  expect(stdout).toContain('succeeded');
  const agent = await enrolledAgent(host, 'without-socket');
  expect((await agent.register()).socket).toBeUndefined();
});
