import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startDynamoDb } from '../../local/dynamodb/dynamodb.ts';
import { IS_STORM } from '../storm.ts';
import { runCommand, type SpawnedHost, spawnHost } from './harness/commands.ts';
import { type Incident, incident, incidentInserted, issueOpened } from './harness/deliveries.ts';
import { eventually, inParallel } from './harness/eventually.ts';
import { ACME_KEY, isTerminal, type ListedRun } from './harness/host-client.ts';
import { labelWrites, triageWrites } from './harness/seen-writes.ts';
import { startTestHost } from './harness/test-host.ts';

const OF_EACH_SOURCE = IS_STORM ? 50 : 10;
const ANSWERED_BEFORE_THE_KILL = OF_EACH_SOURCE + 2;
let data: string;
const spawned: SpawnedHost[] = [];

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'countersign-start-'));
});
afterEach(async () => {
  for (const each of spawned.splice(0)) await each.end('SIGKILL');
  rmSync(data, { recursive: true, force: true });
});

async function start(...options: string[]): Promise<SpawnedHost> {
  const host = await spawnHost('--data', data, '--quiet', ...options);
  spawned.push(host);
  return host;
}

/** No process has the port or the data any more. */
async function expectNothingLeft(host: SpawnedHost): Promise<void> {
  await expect(fetch(host.url)).rejects.toThrow();
  await (await startDynamoDb(data, {})).stop();
}

/** A schedule of a run that writes nothing. */
async function scheduleEveryMinute(host: SpawnedHost): Promise<void> {
  const headers = { 'x-api-key': ACME_KEY };
  const workflow = 'name: tick\nsteps:\n  - {id: now, tool: transform, with: {slot: "{% trigger.slot %}"}}\n';
  const asked = [
    ['POST', '/workflows', workflow, 'application/yaml'],
    [
      'PUT',
      '/automations/tick',
      JSON.stringify({ trigger: { source: 'manual' }, workflow: { name: 'tick', version: 1 } }),
    ],
    ['PUT', '/schedules/tick', JSON.stringify({ automation: 'tick', rate: '1 minute' })],
  ] as const;
  for (const [method, path, body, type = 'application/json'] of asked) {
    const answer = await host.request(method, `/api/v1${path}`, {
      headers: { ...headers, 'content-type': type },
      body,
    });
    if (answer.status >= 300) throw new Error(answer.text);
  }
}

it(`kill -9 during ${2 * OF_EACH_SOURCE} webhooks loses no accepted webhook and no schedule, and repeats no write`, async () => {
  const host = await start('--port', '0');
  await host.trustAutomations();
  await scheduleEveryMinute(host);
  const incidents = Array.from({ length: OF_EACH_SOURCE }, (_, index) => incident(`before the kill ${index}`));
  await inParallel(incidents, 8, (each) => host.createIncident(each));

  const accepted: { runId: string; filed?: Incident; issue?: number }[] = [];
  const deliveries = incidents.flatMap((filed, issue) => [
    async () => ({ issue, answer: await host.sendGithub(issueOpened(issue + 1)) }),
    async () => ({ filed, answer: await host.sendServicenow(incidentInserted(filed)) }),
  ]);
  await inParallel(deliveries, 8, async (deliver) => {
    if (host.process.killed) return;
    // A webhook without a response may not be accepted; its sender sends it again.
    const delivered = await deliver().catch(() => undefined);
    const runId = delivered?.answer.body?.runIds[0];
    if (runId === undefined) return;
    accepted.push({ ...delivered, runId });
    if (accepted.length === ANSWERED_BEFORE_THE_KILL) await host.end('SIGKILL');
  });
  expect(accepted.length).toBeGreaterThanOrEqual(ANSWERED_BEFORE_THE_KILL);
  await expectNothingLeft(host);

  const again = await startTestHost({ dataFolder: data });
  try {
    await again.idle();
    const restartedAt = new Date(await again.now()).toISOString();
    const known = (await again.allRuns()).map(({ runId }) => runId);
    expect(known).toEqual(expect.arrayContaining(accepted.map(({ runId }) => runId)));
    const runs = await again.letTimePassUntil(known, (run) => isTerminal(run) && run.evidence !== null);
    expect(runs.filter(({ status }) => status !== 'succeeded')).toEqual([]);
    const calls = await again.calls();
    const attempts = (runId: string) => runs.find((run) => run.runId === runId)?.receipts[0]?.attempt ?? 0;
    for (const { runId, filed, issue } of accepted) {
      // A repeat is only ever a second attempt, and only of a write that sets what is already set.
      const repeatable = filed ? triageWrites(calls, filed).assign : labelWrites(calls, Number(issue) + 1);
      expect(repeatable).toBeGreaterThanOrEqual(1);
      expect(repeatable, runId).toBeLessThanOrEqual(attempts(runId));
      if (filed) expect(triageWrites(calls, filed), runId).toMatchObject({ note: 1, post: 1 });
    }
    const ticks = await eventually('a slot after the restart', async () => {
      await again.advance(60_000);
      await again.sweep();
      const { body } = await again.api<{ runs: ListedRun[] }>('/runs?automation=tick&limit=100');
      return body.runs.some(({ createdAt }) => createdAt > restartedAt) ? body.runs : undefined;
    });
    expect(new Set(ticks.map(({ trigger }) => trigger.key)).size).toBe(ticks.length);
  } finally {
    await again.stop();
  }
});

it('SIGTERM and SIGINT leave no process, and --fresh deletes the data of an earlier start', async () => {
  const first = await start('--port', '0');
  await first.waitForRun(await first.openIssue(1));
  expect((await first.end('SIGTERM')).code).toBe(0);
  await expectNothingLeft(first);

  const fresh = await start('--port', '0', '--fresh');
  expect(await fresh.allRuns()).toEqual([]);
  expect(await fresh.calls()).toEqual([]);
  expect((await fresh.end('SIGINT')).code).toBe(0);
  await expectNothingLeft(fresh);
});

it('a port in use is a clear error', async () => {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, '127.0.0.1', listening));
  const { port } = other.address() as AddressInfo;
  const { code, output } = await runCommand('local/start.ts', '--port', String(port), '--data', data);
  other.close();
  expect(code).toBe(1);
  expect(output).toMatch(new RegExp(`port ${port} is in use; .*--port`));
  expect(output).not.toMatch(/^ +at /m);
});

it('an unknown option shows the usage', async () => {
  const { code, output } = await runCommand('local/start.ts', '--prot', '1');
  expect(code).toBe(2);
  expect(output).toContain('--port');
});
