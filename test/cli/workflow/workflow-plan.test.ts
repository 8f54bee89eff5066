import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { localSecretValue } from '../../../local/host/seed.ts';
import { ACME_KEY, isTerminal } from '../../local/harness/host-client.ts';
import { startTestHost, type TestHost } from '../../local/harness/test-host.ts';
import { onTerminal, ROOT } from '../command-line.ts';

const FILE = 'workflows/triage-incident.yaml';
const EVENT = 'events/servicenow-incident-p1.json';
/** A little longer than warm functions cache an automation. */
const EFFECTIVE_MS = 61_000;

let host: TestHost;
let folder: string;
beforeAll(async () => {
  host = await startTestHost();
  folder = mkdtempSync(join(tmpdir(), 'countersign-plan-'));
});
afterAll(async () => {
  await host.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => host.request('DELETE', '/_sim/calls'));

const countersign = (...args: string[]) => onTerminal(200, [...args, '--url', host.url]);

function changed(change: (text: string) => string): string {
  const path = join(folder, 'changed.yaml');
  writeFileSync(path, change(readFileSync(join(ROOT, FILE), 'utf8')));
  return path;
}

test('a plan reads the targets, shows changes and required approvals, and writes nothing', async () => {
  const { exitCode, stdout } = await countersign('workflow', 'simulate', FILE, '--event', EVENT);
  expect(exitCode).toBe(0);
  expect(stdout).toContain('~ assignment_group: "" → Database ("7db8c036…")');
  expect(stdout).toMatch(/needs approval by .* medium risk/);
  expect(stdout).toContain('run (known after apply)');
  const calls = await host.calls();
  expect(calls.length).toBeGreaterThan(0);
  expect(calls.filter(({ method }) => method !== 'GET')).toEqual([]);
});

test('a plan has the same hash until the target changes', async () => {
  const hash = async () => {
    const { stdout } = await countersign('workflow', 'simulate', FILE, '--event', EVENT, '--json');
    return JSON.parse(stdout).planHash;
  };
  const first = await hash();
  expect(await hash()).toBe(first);
  const { sys_id: sysId } = JSON.parse(readFileSync(join(ROOT, EVENT), 'utf8'));
  const body = JSON.stringify({ assignment_group: '0d5ba7cac65af0de6424eb3466dd1566' });
  const authorization = `Basic ${Buffer.from('admin:admin').toString('base64')}`;
  await host.request('PATCH', `/_sim/servicenow/api/now/table/incident/${sysId}`, { headers: { authorization }, body });
  expect(await hash()).not.toBe(first);
});

test('an identical earlier write is not planned again', async () => {
  const issue = JSON.parse(readFileSync(join(ROOT, 'events/github-issue-opened.json'), 'utf8'));
  const [runId = ''] = (await host.sendGithub(issue)).body.runIds;
  await host.waitForRun(runId, isTerminal);
  const args = ['workflow', 'simulate', 'workflows/label-new-issue.yaml', '--event', 'events/github-issue-opened.json'];
  const plan = JSON.parse((await countersign(...args, '--json')).stdout);
  expect(plan.steps).toMatchObject([{ id: 'label', madeBy: { runId }, gate: null }]);
  const { stdout } = await countersign(...args);
  expect(stdout).toContain('identical to the write of run');
  expect(stdout).toContain('0 writes; no approval needed');
});

test('the credentials of plans can read but not write', async () => {
  const { servicenow, github, slack } = JSON.parse(localSecretValue('countersign/local/acme/plan-connections') ?? '');
  const basic = Buffer.from(`${servicenow.username}:${servicenow.password}`).toString('base64');
  const tries = [
    ['servicenow', '/api/now/table/incident', `Basic ${basic}`, '/api/now/table/incident'],
    [
      'github',
      '/repos/octo-org/payments/issues/7/labels',
      `Bearer ${github.token}`,
      '/repos/octo-org/payments/issues/7/labels',
    ],
    ['slack', '/api/chat.postMessage', `Bearer ${slack.botToken}`, '/api/conversations.list'],
  ] as const;
  for (const [system, write, authorization, look] of tries) {
    const headers = { authorization };
    const body = JSON.stringify({ labels: ['x'], short_description: 'x', channel: '#incidents', text: 'x' });
    const refused = await host.request('POST', `/_sim/${system}${write}`, { headers, body });
    expect([system, refused.status]).toEqual([system, 403]);
    const allowed = await host.request('GET', `/_sim/${system}${look}`, { headers });
    expect([system, allowed.status]).toEqual([system, 200]);
  }
});

test('an automation runs the published version and shows its author', async () => {
  const path = changed((text) =>
    text.replace('description: ', 'description: Again, ').replace(/ {2}- id: assign[\s\S]*/, ''),
  );
  const published = await countersign('workflow', 'publish', path, '--automation', 'triage-incident');
  expect({ exitCode: published.exitCode, lines: published.lines }).toEqual({
    exitCode: 0,
    lines: ['published triage-incident version 2', 'triage-incident uses it within 60 s'],
  });
  const again = await countersign('workflow', 'publish', path);
  expect(again.lines).toEqual(['triage-incident version 2 has this content; nothing was published']);
  const { body } = await host.api<{ versions: unknown[] }>('/workflows/triage-incident');
  expect(body.versions).toMatchObject([{ version: 2, author: 'olivia', steps: 1 }, { version: 1 }]);

  await host.advance(EFFECTIVE_MS);
  const payload = JSON.parse(readFileSync(join(ROOT, EVENT), 'utf8'));
  const sent = await host.sendServicenow({ ...payload, sys_mod_count: 41 }, { atMs: await host.now() });
  const run = await host.waitForRun(sent.body.runIds[0] ?? '', isTerminal);
  expect(run).toMatchObject({ status: 'succeeded', workflow: { name: 'triage-incident', version: 2 } });
});

test('the example workflow can be rolled back while it waits', async () => {
  const issue = JSON.parse(readFileSync(join(ROOT, 'events/github-issue-reopened.json'), 'utf8'));
  const [runId = ''] = (await host.sendGithub(issue)).body.runIds;
  await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
  expect((await countersign('runs', 'rollback', runId, '--reason', 'not a regression')).exitCode).toBe(0);
  const run = await host.waitForRun(runId, isTerminal);
  expect(run).toMatchObject({ status: 'canceled', compensation: [{ step: 'mark', outcome: 'reversed' }] });
});

test('concurrent publications get different versions, identical ones the same', async () => {
  const file = (group: string) => `name: at-once\nsteps:\n  - { id: a, tool: transform, with: { group: ${group} } }\n`;
  const publish = (text: string) =>
    host.request<{ version: number }>('POST', '/api/v1/workflows', {
      headers: { 'x-api-key': ACME_KEY, 'content-type': 'application/yaml' },
      body: text,
    });
  const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((group) => publish(file(group))));
  expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(201));
  expect(answers.map(({ body }) => body.version).sort()).toEqual([1, 2, 3, 4, 5]);
  const newest = 'abcde'[answers.findIndex(({ body }) => body.version === 5)] ?? '';
  const again = await publish(file(newest));
  expect({ status: again.status, version: again.body.version }).toEqual({ status: 200, version: 5 });
});

test('another tenant cannot read workflows, and only owners and admins publish', async () => {
  const foreign = await host.api('/workflows/triage-incident/versions/2', 'local-globex-owner-key');
  expect(foreign.status).toBe(404);
  const { exitCode, stderr } = await countersign('workflow', 'publish', FILE, '--key', 'local-operator-key');
  expect(exitCode).toBe(1);
  expect(stderr).toContain('owner or admin');
});
