import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Assembly } from '../../local/template/synthesize.ts';
import { onTerminal } from '../cli/command-line.ts';
import { ACME_KEY, isTerminal, type ShownRun } from '../local/harness/host-client.ts';
import { labelWrites } from '../local/harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { compiledRego } from './rego.ts';

/** Longer than a warm worker caches policies. */
const KNOWN_EVERYWHERE_AFTER_MS = 61_000;

/** The worker's code, outside of the repository and without Cedar. */
const workerCode = mkdtempSync(join(tmpdir(), 'countersign-worker-'));
const policies = mkdtempSync(join(tmpdir(), 'countersign-policies-'));

function withoutCedar(assembly: Assembly): Assembly {
  const resources = Object.entries(assembly.template.Resources ?? {});
  const worker = resources.find(([id, { Type }]) => Type === 'AWS::Lambda::Function' && id.startsWith('WorkerStep'));
  const code = worker?.[1].Properties?.Code as { S3Key: string } | undefined;
  const key = code?.S3Key ?? '';
  cpSync(assembly.codeFolder(key), workerCode, { recursive: true });
  rmSync(join(workerCode, 'node_modules', '@cedar-policy'), { recursive: true });
  return { ...assembly, codeFolder: (s3Key) => (s3Key === key ? workerCode : assembly.codeFolder(s3Key)) };
}

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({ change: withoutCedar });
});
afterAll(async () => {
  await host.stop();
  for (const folder of [workerCode, policies]) rmSync(folder, { recursive: true, force: true });
});

function publish(body: unknown, key = ACME_KEY) {
  const headers = { 'x-api-key': key };
  return host.request<{ hash: string }>('PUT', '/api/v1/policies', { headers, body: JSON.stringify(body) });
}

const recordOf = (run: ShownRun) => JSON.stringify(run.commits);

it('a worker without a policy engine denies, records it and calls no target', async () => {
  const run = await host.waitForRun(await host.openIssue(1), isTerminal);
  expect(run.error?.code).toBe('POLICY_ERROR');
  expect(recordOf(run)).toContain("Cannot find module '@cedar-policy/cedar-wasm/nodejs'");
  expect(labelWrites(await host.calls(), 1)).toBe(0);
});

it('a published Rego policy decides what happens at the target', async () => {
  const { status, body } = await publish(compiledRego('decision'));
  expect(status).toBe(200);
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
  const run = await host.waitForRun(await host.openIssue(2), isTerminal);
  expect(run.status).toBe('succeeded');
  expect(recordOf(run)).toContain(body.hash);
  expect(labelWrites(await host.calls(), 2)).toBe(1);
});

it('a replay finds the recorded decisions that other policies would change', async () => {
  writeFileSync(join(policies, 'mine.cedar'), 'forbid (principal, action, resource == Operation::"http.request");');
  const { exitCode, lines, stderr } = await onTerminal(200, [
    'policy',
    'replay',
    '--policies',
    policies,
    '--url',
    host.url,
  ]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('--acknowledge') });
  expect(lines[0]).toMatch(/^loosens +run_\w+ \w+: github\.labels\.add at .*#1$/);
  expect(lines[1]).toMatch(/^ +deny → allow: a low-risk write needs no approval$/);
  expect(lines.at(-1)).toBe('2 decisions of 2 runs: 1 would change, 1 loosens');
});

it('invalid policies, and policies of a person without the right, are not published', async () => {
  const before = (await host.api('/policies')).body;
  const broken = { engine: 'cedar', files: { 'mine.cedar': '\npermit (principal' } };
  expect(await publish(broken)).toMatchObject({ status: 422, text: expect.stringContaining('mine.cedar:2') });
  expect((await publish(compiledRego('decision'), 'local-operator-key')).status).toBe(403);
  expect((await host.api('/policies')).body).toEqual(before);
});
