import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { issueOpened } from '../harness/deliveries.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

let folder: string;
let host: TestHost;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-private-'));
  // As a folder that an earlier version made.
  chmodSync(folder, 0o755);
  host = await startTestHost({ dataFolder: folder });
});
afterAll(async () => {
  await host.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('only its owner can read the data of the local host', async () => {
  const { body } = await host.sendGithub(issueOpened(1));
  await host.waitForRun(body.runIds[0] ?? '');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !join(entry.parentPath, entry.name).includes('cdk.out'))
    .map((entry) => ({ path: join(entry.parentPath, entry.name), isFolder: entry.isDirectory() }));
  expect(files.length).toBeGreaterThan(4);
  const open = files.filter(({ path, isFolder }) => (statSync(path).mode & 0o777) !== (isFolder ? 0o700 : 0o600));
  expect(open).toEqual([]);
});

it.each(['/_local/clock', '/_sim', '/api/v1/runs'])('%s refuses pages of other sites', async (path) => {
  const headers = { origin: 'https://evil.example', authorization: 'Bearer local-owner-key' };
  expect((await host.request('GET', path, { headers })).status).toBe(403);
});
