import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-people-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

async function answering(answer: (path: string) => unknown, status = 200): Promise<string> {
  api = await stubApi((path) => ({ status, body: answer(path) }));
  return api.url;
}

const PENDING = {
  kind: 'person',
  changeId: 'chg_1',
  person: 'dora',
  before: null,
  after: { id: 'dora' },
  widens: ['dora may approve, as approver'],
  requestedBy: 'olivia',
  requestedAt: '2026-01-02T12:00:00.000Z',
  expiresAt: '2026-01-09T12:00:00.000Z',
};

it('people put says that a second owner must confirm a change, and how', async () => {
  const next = 'another owner confirms it: countersign changes confirm chg_1';
  const url = await answering(() => ({ pending: PENDING, next }), 202);
  const file = join(folder, 'dora.yaml');
  writeFileSync(file, 'id: dora\nname: Dora\nrole: approver\n');
  const { exitCode, stdout, stderr } = await onTerminal(120, ['people', 'put', file, '--url', url]);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    /a second owner must confirm this change until 2026-01-09.*\n {2}dora may approve, as approver/,
  );
  expect(stderr).toContain(next);
  expect(api?.asked).toEqual(['PUT /api/v1/people/dora']);
  expect(api?.sent).toEqual([{ name: 'Dora', role: 'approver' }]);
});

it('people put rejects a file without an id before it sends a request', async () => {
  const url = await answering(() => ({}));
  const file = join(folder, 'nobody.yaml');
  writeFileSync(file, 'name: Dora\n');
  const { exitCode, stderr } = await onTerminal(120, ['people', 'put', file, '--url', url]);
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/is not a person: "id" is missing/)]);
  expect(api?.asked).toEqual([]);
});

it('people delegates adds and removes delegates', async () => {
  const ana = { id: 'ana', name: 'Ana', role: 'approver', tier: 'high', groups: [], identities: [] };
  const url = await answering(() => ({ ...ana, delegates: [{ person: 'ben' }, { person: 'bo' }] }));
  await onTerminal(120, ['people', 'delegates', 'ana', '--add', 'chloe', '--remove', 'bo', '--url', url]);
  expect(api?.sent).toEqual([{ delegates: ['ben', 'chloe'] }]);
  const { exitCode, stderr } = await onTerminal(120, ['people', 'delegates', 'ana', '--url', url]);
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/--add PERSON/)]);
});

it('changes pending, confirm and reject handle pending changes', async () => {
  const url = await answering((path) => {
    if (path.endsWith('/confirm')) return { id: 'dora' };
    return path.endsWith('/reject')
      ? { rejected: 'chg_1' }
      : { pending: [{ ...PENDING, expired: false }], nextCursor: null };
  });
  expect((await onTerminal(120, ['changes', 'pending', '--url', url])).stdout).toMatch(
    /chg_1 +dora +olivia +2026-01-09/,
  );
  expect((await onTerminal(120, ['changes', 'confirm', 'chg_1', '--url', url])).stdout).toBe(
    'confirmed; dora is changed',
  );
  const rejected = await onTerminal(120, ['changes', 'reject', 'chg_1', '--reason', 'who is that?', '--url', url]);
  expect(rejected.stdout).toMatch(/rejected chg_1/);
  expect(api?.sent).toEqual([{ reason: 'who is that?' }]);
});

it('changes list shows who changed which fields', async () => {
  const change = {
    changeId: 'chg_1',
    at: '2026-01-02T12:00:00.000Z',
    actor: 'olivia',
    kind: 'person',
    name: 'dora',
    action: 'changed',
    before: { role: 'member', name: 'Dora' },
    after: { role: 'approver', name: 'Dora' },
  };
  const url = await answering(() => ({ changes: [change], nextCursor: null }));
  const { stdout } = await onTerminal(120, ['changes', 'list', '--url', url]);
  expect(stdout).toMatch(/olivia +person dora changed +role +chg_\w+$/m);
  const narrow = await onTerminal(80, ['changes', 'list', '--url', url]);
  expect(narrow.stdout).toMatch(/olivia: person dora changed \(role\)\n {2}chg_\w+$/m);
});

it('runs show fetches every page of steps of a long run', async () => {
  const runId = `run_${'1'.repeat(32)}`;
  const step = (index: number) => ({ id: `s${index}`, index, tool: 'transform', status: 'pending' });
  const pageOf = (from: number) => Array.from({ length: 100 }, (_, at) => step(from + at));
  const run = {
    runId,
    status: 'succeeded',
    automation: 'a',
    workflow: { name: 'w', version: 1 },
    trigger: { source: 'github', event: 'issues.opened', key: 'k' },
    createdAt: '2026-01-02T12:00:00.000Z',
    deadlineAt: '2026-01-02T14:00:00.000Z',
    head: { seq: 1, hash: 'h' },
    trace: { id: '0'.repeat(32), url: null },
    approvals: [],
    receipts: [],
    compensation: [],
    reruns: [],
    commits: [],
    steps: pageOf(0),
    nextStepsCursor: '100',
  };
  const url = await answering((path) => {
    const cursor = Number(new URL(path, 'http://x').searchParams.get('cursor'));
    if (!path.includes('/steps')) return run;
    const next = cursor + 100;
    return { steps: pageOf(cursor), receipts: [], approvals: [], nextCursor: next < 1_000 ? String(next) : null };
  });
  const { exitCode, stdout } = await onTerminal(120, ['runs', 'show', runId, '--json', '--url', url]);
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout).steps.map(({ id }: { id: string }) => id)).toEqual(
    Array.from({ length: 1_000 }, (_, index) => `s${index}`),
  );
});

it('keys list shows keys that belong to nobody, and what to do', async () => {
  const key = { name: 'unnamed-0123', person: 'nightly-job', machine: false, role: 'operator', expired: false };
  const own = { ...key, name: 'mine', person: 'olivia', holder: 'person' };
  const url = await answering(() => ({ apiKeys: [own, { ...key, holder: 'none' }], nextCursor: null }));
  const { stdout, stderr } = await onTerminal(120, ['keys', 'list', '--url', url]);
  expect(stdout).toMatch(/mine +olivia +operator/);
  expect(stdout).toMatch(/unnamed-0123 +nobody \(nightly-job\) +operator/);
  expect(stderr).toContain('keys create NAME --machine --role ROLE');
  expect(stderr).toContain('keys revoke unnamed-0123');
});
