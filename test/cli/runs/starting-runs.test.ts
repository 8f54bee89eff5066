import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { onTerminal, type StubApi, stubApi } from '../command-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-starting-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let api: StubApi;
afterEach(() => api.close());

const RUN = `run_${'3f9c2a'.padEnd(32, '0')}`;
const STARTED = { runId: RUN, workflow: { name: 'restart-service', version: 4 } };
const SCHEDULE = {
  name: 'nightly',
  enabled: true,
  automation: 'report',
  cron: '0 9 * * 1-5',
  timeZone: 'Europe/Berlin',
  catchUp: 'all',
  catchUpMax: 3,
  makers: ['olga'],
  nextRuns: ['2026-03-02T08:00:00.000Z'],
  lastRun: { slot: '2026-02-27T08:00:00.000Z', runId: RUN },
  lastError: null,
  missed: null,
};
const SOURCE = {
  name: 'alerts',
  enabled: true,
  title: '{% trigger.payload.alert %}',
  path: '/webhooks/generic/acme/alerts',
  secretEntry: 'generic/alerts',
};

async function call(body: unknown, ...args: string[]) {
  return respondingWith(201, body, ...args);
}

async function respondingWith(status: number, body: unknown, ...args: string[]) {
  api = await stubApi(() => ({ status, body }));
  return onTerminal(140, [...args, '--url', api.url]);
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const inputs = () => file('inputs.json', '{"service": "orders", "count": 1}');

describe('a command that starts a run sends what was given, with the key, and prints the run', () => {
  it.each<[string, string[], string, unknown]>([
    [
      'runs start',
      ['restart-service', '--workflow-version', '4', '--input', 'count=3', '--input', 'name=a=b', '--title', 'Restart'],
      'POST /api/v1/runs',
      { workflow: { name: 'restart-service', version: 4 }, inputs: { count: 3, name: 'a=b' }, title: 'Restart' },
    ],
    [
      'automations run',
      ['nightly', '--inputs', inputs(), '--input', 'count=2', '--subject', 'INC1'],
      'POST /api/v1/automations/nightly/run',
      { inputs: { service: 'orders', count: 2 }, subject: 'INC1' },
    ],
    ['runs rerun', [RUN, '--newest'], `POST /api/v1/runs/${RUN}/rerun`, { workflowVersion: 'newest' }],
    ['runs replay', [RUN, '--step', 'label'], `POST /api/v1/runs/${RUN}/replay`, { step: 'label' }],
  ])('%s', async (command, args, asked, sent) => {
    const { exitCode, stdout, stderr } = await call(
      STARTED,
      ...command.split(' '),
      ...args,
      '--idempotency-key',
      'deploy-1',
    );
    expect({ exitCode, asked: api.asked, sent: api.sent }).toEqual({ exitCode: 0, asked: [asked], sent: [sent] });
    expect(api.headers[0]?.['idempotency-key']).toBe('deploy-1');
    expect(stdout).toBe(`${RUN} started: restart-service v4`);
    expect(stderr).toContain('runs watch run_3f9c2a00');
  });

  it('plan apply', async () => {
    const { stdout } = await call(STARTED, 'plan', 'apply', 'a'.repeat(64));
    expect(api.asked).toEqual([`POST /api/v1/plans/${'a'.repeat(64)}/apply`]);
    expect(stdout).toBe(`${RUN} started: restart-service v4`);
  });

  it.each([
    [['runs', 'start', 'restart-service', '--idempotency-key', 'k'], 'an earlier request with this key started it'],
    [['automations', 'run', 'nightly', '--idempotency-key', 'k'], 'an earlier request with this key started it'],
    [['runs', 'rerun', RUN, '--idempotency-key', 'k'], 'an earlier request with this key started it'],
    [['runs', 'replay', RUN, '--idempotency-key', 'k'], 'an earlier request with this key started it'],
    [['plan', 'apply', 'a'.repeat(64)], 'the plan was applied before'],
  ])('%j says so if the request had started the run before', async (args, why) => {
    const { exitCode, stdout } = await respondingWith(200, STARTED, ...args);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: `${RUN} not started again, ${why}: restart-service v4`,
    });
    await api.close();
    const { stdout: json } = await respondingWith(200, STARTED, ...args, '--json');
    expect(JSON.parse(json)).toEqual({ ...STARTED, isNew: false });
  });

  it('a prefix of a run id is resolved by the server first; without a key none is sent', async () => {
    const { exitCode } = await call(STARTED, 'runs', 'replay', '3f9c2a');
    expect(exitCode).toBe(0);
    expect(api.asked).toEqual(['GET /api/v1/runs/run_3f9c2a', `POST /api/v1/runs/${RUN}/replay`]);
    expect(api.headers[1]).not.toHaveProperty('idempotency-key');
  });

  it.each([
    ['--input must be NAME=VALUE', ['runs', 'start', 'x', '--input', 'service']],
    ['is not a JSON object', ['automations', 'run', 'x', '--inputs', file('list.json', '[1]')]],
    ['--workflow-version must be a number', ['runs', 'start', 'x', '--workflow-version', 'newest']],
    ['is not a run id', ['runs', 'rerun', 'yesterday']],
  ])('%s: exits with 2 and sends nothing', async (text, args) => {
    const { exitCode, stderr } = await call(STARTED, ...args);
    expect({ exitCode, asked: api.asked }).toEqual({ exitCode: 2, asked: [] });
    expect(stderr).toContain(text);
  });
});

describe('schedules', () => {
  it('list shows times, next run and the error of the last slot', async () => {
    const error = { slot: '2026-02-27T08:00:00.000Z', at: '', code: 'CONFLICT', message: 'it is disabled' };
    const off = { ...SCHEDULE, name: 'off', enabled: false, nextRuns: [], lastError: error };
    const { lines } = await call({ schedules: [SCHEDULE, off], nextCursor: null }, 'schedules', 'list');
    expect(lines[1]).toMatch(/^nightly +0 9 \* \* 1-5 \(Europe\/Berlin\) +report +2026-03-02T08:00:00.000Z +2026/);
    expect(lines.find((line) => line.startsWith('off '))).toMatch(/ disabled .*failed/);
  });

  it('show has all of it', async () => {
    const missed = { slots: 2, lastSlot: '2026-02-26T08:00:00.000Z' };
    const { stdout } = await call({ ...SCHEDULE, missed, inputs: { a: 1 } }, 'schedules', 'show', 'nightly');
    expect(api.asked).toEqual(['GET /api/v1/schedules/nightly']);
    for (const text of ['nightly  enabled', 'all, at most 3', 'olga', '{"a":1}', `started ${RUN}`, '2 slots']) {
      expect(stdout).toContain(text);
    }
  });

  it('save sends the file, and says when it runs next', async () => {
    const path = file('nightly.yaml', 'name: nightly\nautomation: report\nrate: 15 minutes\n');
    const { stdout } = await call(SCHEDULE, 'schedules', 'save', path);
    expect([api.asked, api.sent]).toEqual([
      ['PUT /api/v1/schedules/nightly'],
      [{ automation: 'report', rate: '15 minutes' }],
    ]);
    expect(stdout).toBe('saved nightly; next run 2026-03-02T08:00:00.000Z');
  });

  it.each([
    ['enable', SCHEDULE, 'enabled nightly; next run 2026-03-02T08:00:00.000Z'],
    ['disable', { ...SCHEDULE, nextRuns: [] }, 'disabled nightly; it starts no runs'],
  ])('%s says what follows', async (verb, answer, text) => {
    expect((await call(answer, 'schedules', verb, 'nightly')).stdout).toBe(text);
    expect(api.asked).toEqual([`POST /api/v1/schedules/nightly/${verb}`]);
  });

  it('delete', async () => {
    expect((await call({ deleted: 'nightly' }, 'schedules', 'delete', 'nightly')).stdout).toBe('deleted nightly');
    expect(api.asked).toEqual(['DELETE /api/v1/schedules/nightly']);
  });
});

describe('sources', () => {
  it('save sends the file, and says where to send and which secret signs', async () => {
    const path = file('alerts.yaml', 'name: alerts\ntitle: Alert\n');
    const { stdout, stderr } = await call({ ...SOURCE, effectiveWithinSeconds: 60 }, 'sources', 'save', path);
    expect([api.asked, api.sent]).toEqual([['PUT /api/v1/sources/alerts'], [{ title: 'Alert' }]]);
    expect(stdout).toBe('saved alerts; within 60 s it can send to /webhooks/generic/acme/alerts');
    expect(stderr).toContain('generic/alerts');
  });

  it('list, show and delete', async () => {
    const { lines } = await call({ sources: [SOURCE], nextCursor: null }, 'sources', 'list');
    expect(lines[1]).toMatch(/^alerts +\/webhooks\/generic\/acme\/alerts +\{% trigger.payload.alert %\}$/);
    await api.close();
    const { stdout } = await call({ ...SOURCE, subject: '{% trigger.payload.host %}' }, 'sources', 'show', 'alerts');
    for (const text of [SOURCE.path, SOURCE.secretEntry, '{% trigger.payload.host %}']) expect(stdout).toContain(text);
    await api.close();
    expect((await call({ deleted: 'alerts' }, 'sources', 'delete', 'alerts')).stdout).toBe('deleted alerts');
    expect(api.asked).toEqual(['DELETE /api/v1/sources/alerts']);
  });
});
