import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-agents-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

async function answering(answer: unknown, status = 200): Promise<string> {
  api = await stubApi(() => ({ status, body: answer }));
  return api.url;
}

const AT = '2026-01-02T12:00:00.000Z';
const AGENT = {
  ...{ agentId: 'acme.payments-1_0a', name: 'payments-1', state: 'executing', environments: ['prod'] },
  ...{ networkSegment: 'vpc-a', enrolledAt: AT, enrolledBy: 'olivia', keyThumbprint: 'abc', lastSyncAt: AT },
  stoppedAt: null,
  process: {
    ...{ version: '0.1.0', registeredAt: AT, environments: ['prod'], capabilities: ['systemd'] },
    ...{ profiles: ['prod-standard'], slots: 2, freeSlots: 1 },
    host: { platform: 'linux', arch: 'arm64', node: '24.21.0' },
  },
  commands: [{ assignmentId: 'run_1.3.2', runId: 'run_1', stepIndex: 3, state: 'acknowledged', until: AT }],
  draining: null,
  errored: null,
};
const TOKEN = {
  ...{ tokenId: 'enr_1', name: 'payments-1', environments: ['prod'], networkSegment: null, state: 'open' },
  ...{ createdBy: 'olivia', createdAt: AT, expiresAt: '2026-01-02T12:15:00.000Z', agentId: null, reused: null },
};

it('agents list and show print state, commands, profiles and version', async () => {
  const url = await answering({ agents: [AGENT], nextCursor: null });
  const list = await onTerminal(120, ['agents', 'list', '--url', url]);
  expect(list.stdout).toMatch(/payments-1 +executing +prod +vpc-a +1 of 2 .*0\.1\.0/);
  await api?.close();
  const show = await onTerminal(80, ['agents', 'show', 'payments-1', '--url', await answering(AGENT)]);
  expect(show.stdout).toMatch(/profiles +prod-standard/);
  expect(show.stdout).toMatch(/run_1 step 3: acknowledged/);
  expect(show.stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
});

it('agents list and show say when an agent stopped, and that another one has never synced', async () => {
  const stopped = { ...AGENT, state: 'offline', process: null, commands: [], lastSyncAt: null, stoppedAt: AT };
  const agents = [stopped, { ...stopped, name: 'payments-2', stoppedAt: null }];
  const list = await onTerminal(120, ['agents', 'list', '--url', await answering({ agents, nextCursor: null })]);
  expect(list.stdout).toMatch(/payments-1 +offline .* stopped \d+\w ago/);
  expect(list.stdout).toMatch(/payments-2 +offline .* never/);
  await api?.close();
  const show = await onTerminal(80, ['agents', 'show', 'payments-1', '--url', await answering(stopped)]);
  expect(show.stdout).toMatch(/last sync +stopped .*2026/);
});

it('agents token prints the token alone on stdout, and how to use it on stderr', async () => {
  const url = await answering({ ...TOKEN, token: 'cse_acme.enr_1.secret' }, 201);
  const options = ['--environment', 'prod', '--environment', 'staging', '--segment', 'vpc-a', '--minutes', '30'];
  const { stdout, stderr } = await onTerminal(120, ['agents', 'token', 'payments-1', ...options, '--url', url]);
  expect(stdout).toBe('cse_acme.enr_1.secret');
  expect(stderr).toContain('countersign agent enrol');
  expect(api?.sent).toEqual([
    { name: 'payments-1', environments: ['prod', 'staging'], networkSegment: 'vpc-a', minutes: 30 },
  ]);
});

it('agents token refuses what is no environment before it sends a request', async () => {
  const url = await answering({});
  const { exitCode, stderr } = await onTerminal(120, ['agents', 'token', 'a', '--environment', 'prd', '--url', url]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('did you mean "prod"?')]);
  expect(api?.asked).toEqual([]);
});

it('agents token names its options, not the fields of the request', async () => {
  const url = await answering({ detail: 'networkSegment: use up to 63 lower-case letters' }, 400);
  const none = await onTerminal(120, ['agents', 'token', 'demo', '--url', url]);
  expect([none.exitCode, none.stderr]).toEqual([
    2,
    expect.stringMatching(/\n--environment is required: prod, staging, dev$/),
  ]);
  expect(api?.asked).toEqual([]);
  const options = ['--environment', 'dev', '--segment', 'VPC A', '--url', url];
  const { stderr } = await onTerminal(120, ['agents', 'token', 'demo', ...options]);
  expect(stderr).toMatch(/\n--segment: use up to 63 lower-case letters$/);
});

it.each([
  [1, '1 time'],
  [2, '2 times'],
])('agents tokens shows that a token was tried again (%i)', async (count, times) => {
  const reused = { at: AT, keyThumbprint: 'abc', count };
  const url = await answering({ enrolmentTokens: [{ ...TOKEN, state: 'used', reused }], nextCursor: null });
  const { stdout } = await onTerminal(120, ['agents', 'tokens', '--url', url]);
  expect(stdout).toContain(`used; tried again ${times}, the last`);
});

it('agents drain, resume and remove act on the agent that is named', async () => {
  const url = await answering(AGENT);
  const drained = await onTerminal(120, ['agents', 'drain', 'payments-1', '--reason', 'patches', '--url', url]);
  expect(drained.stdout).toBe('payments-1 drains; it still runs 1');
  await onTerminal(120, ['agents', 'resume', 'payments-1', '--url', url]);
  expect(api?.asked).toEqual(['POST /api/v1/agents/payments-1/drain', 'POST /api/v1/agents/payments-1/resume']);
  expect(api?.sent[0]).toEqual({ reason: 'patches' });
  await api?.close();
  const removed = await answering({ removed: 'payments-1', running: 1 });
  const { stdout } = await onTerminal(120, ['agents', 'remove', 'payments-1', '--url', removed]);
  expect(stdout).toMatch(/^removed payments-1; it ran 1/);
});

it('agents profiles and set-profile show and replace lists', async () => {
  const allow = [{ executable: '/usr/bin/systemctl', args: ['restart', 'payments-*'] }];
  const profile = {
    name: 'prod-standard',
    environment: 'prod',
    allow,
    deny: [],
    rollbackRequired: true,
    builtIn: false,
  };
  const shown = await onTerminal(120, ['agents', 'profiles', '--url', await answering({ profiles: [profile] })]);
  expect(shown.stdout).toMatch(/allows +\/usr\/bin\/systemctl restart payments-\*/);
  await api?.close();
  const file = join(folder, 'profile.yaml');
  writeFileSync(file, 'name: prod-standard\nallow: [{ executable: /usr/bin/systemctl }]\n');
  const url = await answering({ ...profile, effectiveWithinSeconds: 60 });
  const { stdout } = await onTerminal(120, ['agents', 'set-profile', file, '--url', url]);
  expect(stdout).toBe('saved prod-standard; it takes effect within 60 seconds');
  expect(api?.sent).toEqual([{ allow: [{ executable: '/usr/bin/systemctl' }] }]);
  writeFileSync(file, 'name: prod-standrd\n');
  const wrong = await onTerminal(120, ['agents', 'set-profile', file, '--url', url]);
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('did you mean "prod-standard"?')]);
});
