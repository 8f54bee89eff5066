import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { piped } from '../cli/command-line.ts';
import { issueOpened } from './deliveries.ts';
import { startTestHost, type TestHost } from './test-host.ts';

let host: TestHost;
const out = mkdtempSync(join(tmpdir(), 'countersign-initech-'));
beforeAll(async () => {
  host = await startTestHost();
});
afterAll(async () => {
  await host.stop();
  rmSync(out, { recursive: true, force: true });
});

const FILE = 'local/initech.tenant.yaml';
const run = (...words: string[]) => piped([...words, '--url', host.url]);
const add = () => run('tenant', 'add', FILE, '--out', out, '--json');
const stored = (name: string) => readFileSync(join(out, name), 'utf8').trim();
const asIrene = (...words: string[]) => run(...words, '--key', stored('irene.key'));
const changeCount = async () => JSON.parse((await asIrene('changes', 'list', '--all', '--json')).stdout).changes.length;

it('tenant add sets up a tenant that accepts its first event; a second run changes nothing', async () => {
  // Interrupted after the owners: the third request to the API gets no response.
  await host.fault({
    function: 'TenantSetupCredentials',
    service: 'secretsmanager',
    operation: 'PutSecretValue',
    nth: 2,
    kind: 'crash_before',
  });
  expect((await add()).exitCode).not.toBe(0);
  const finished = await add();
  expect(finished.stderr).toBe('');
  expect(JSON.parse(finished.stdout)).toMatchObject({ todo: [] });
  expect(statSync(join(out, 'irene.key')).mode & 0o777).toBe(0o600);
  const before = await changeCount();
  expect((await add()).exitCode).toBe(0);
  expect(await changeCount()).toBe(before);

  const secret = stored('github-webhook-secret');
  const { status, body } = await host.sendGithub(issueOpened(1), { tenant: 'initech', secret });
  expect(status).toBe(202);
  await host.idle();
  expect((await host.run(body.runIds[0] ?? '', stored('irene.key'))).status).toBe('succeeded');
  const manifest = JSON.parse(stored('slack-app-manifest.json'));
  expect(manifest.settings.interactivity.request_url).toBe(`${host.url}/slack/interactivity`);
});

it('doctor and connections test find a rejected credential and show it nowhere', async () => {
  const tested = await asIrene('connections', 'test');
  expect(tested).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('GitHub knows the token') });
  const file = join(out, 'github.yaml');
  writeFileSync(
    file,
    `name: github\nbaseUrl: ${host.url}/_sim/github\ninstance: initech\ncredential: { token: canary-wrong-token }\n`,
  );
  const added = await asIrene('connections', 'add', file);
  expect(added).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('rejects the credential (401)') });
  const examined = await asIrene('doctor');
  expect(examined.exitCode).toBe(1);
  expect(examined.stdout).toContain('connection github');
  const everything = [added, examined].map(({ stdout, stderr }) => stdout + stderr).join('') + host.log.join('\n');
  expect(everything).not.toContain('canary-wrong-token');
});
