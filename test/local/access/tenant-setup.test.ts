import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { piped } from '../../cli/command-line.ts';
import { type Answer, personAtTerminal } from '../../cli/person-at-terminal.ts';
import { issueOpened } from '../harness/deliveries.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

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
const IRENE =
  '{ id: irene, name: Irene Ito, role: owner, identities: ["slack:T300INITECH/U500IRENE", "github:irene"] }';
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
    `name: github\nbaseUrl: ${host.url}/_sim/github\ninstance: initech\ncredential: { token: canary-wrong-token }\nplanCredential: null\n`,
  );
  const added = await asIrene('connections', 'add', file);
  expect(added).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('rejects the credential (401)') });
  expect(added.stdout).toContain('github (plans): initech has no credential "github" for plans');
  expect(added.stdout).toContain('add planCredential to FILE');
  const examined = await asIrene('doctor');
  expect(examined.exitCode).toBe(1);
  expect(examined.stdout).toContain('connection github');
  const everything = [added, examined].map(({ stdout, stderr }) => stdout + stderr).join('') + host.log.join('\n');
  expect(everything).not.toContain('canary-wrong-token');
});

describe('tenant add at a terminal', () => {
  const file = join(out, 'globex.tenant.yaml');
  const folder = join(out, 'globex');
  const ask = (answers: readonly Answer[]) =>
    personAtTerminal(['tenant', 'add', file, '--out', folder, '--url', host.url], answers);
  const people = async () =>
    (await host.api<{ people: { id: string }[] }>('/people', 'local-globex-owner-key')).body.people.map(({ id }) => id);
  const owner: readonly Answer[] = [
    ['tenant (acme, globex, initech)', 'globex'],
    ['id of the first owner', 'gina'],
    ['name of gina', 'Gina Garcia'],
    ['identities of gina', 'github:gina, email:gina@example.com'],
  ];

  it('changes nothing if the input ends at any question', async () => {
    const before = await people();
    for (let answered = 0; answered <= owner.length; answered += 1) {
      const { exitCode, stderr } = await ask(owner.slice(0, answered));
      expect(exitCode).toBe(130);
      expect(stderr).toContain('the input ended; nothing was changed');
    }
    expect(existsSync(file)).toBe(false);
    expect(await people()).toEqual(before);
  });

  it('asks again after a mistake, writes the file and sets the tenant up', async () => {
    const { exitCode, stdout, stderr, unexpected, left } = await ask([
      ['tenant (acme, globex, initech)', 'globexx'],
      ['tenant (acme', ''],
      ['tenant (acme', 'globex'],
      ['id of the first owner', 'Gina'],
      ...owner.slice(1, 3),
      ['identities of gina', 'gihub:gina'],
      ...owner.slice(3),
      ['id of the second owner', 'gina'],
      ['id of the second owner', ''],
      ['connect GitHub (y/n)', 'maybe'],
      ['connect GitHub (y/n)', ''],
      ['connect ServiceNow', 'n'],
      ['connect Slack', 'no'],
      ['publish the sample', 'y'],
    ]);
    expect({ unexpected, left }).toEqual({ unexpected: [], left: [] });
    for (const hint of [
      'has no tenant "globexx"',
      'name one of acme, globex, initech',
      'use lower-case letters',
      '"gihub:gina" is not an identity',
      'gina is the first owner',
      'answer y or n',
    ]) {
      expect(stderr).toContain(hint);
    }
    expect(stdout).toContain('owners: gina (new)');
    expect(stdout).toContain('workflow label-new-issue: version');
    expect(await people()).toContain('gina');
    expect(exitCode).toBe(0);
  });

  it('continues with the file after it was interrupted, without a question', async () => {
    const written = readFileSync(file, 'utf8');
    await host.fault({ function: 'DefinitionsApiDefinitions', kind: 'crash_before', service: 'dynamodb' });
    expect((await ask([])).exitCode).not.toBe(0);
    await host.clearFaults();
    const { exitCode, stdout, unexpected } = await ask([]);
    expect({ exitCode, unexpected }).toEqual({ exitCode: 0, unexpected: [] });
    expect(stdout).toContain('person gina: unchanged');
    expect(readFileSync(file, 'utf8')).toBe(written);
  });

  it('says what is left to do and the command that continues', async () => {
    const incomplete = join(out, 'incomplete.yaml');
    const connection = `  pagerduty: { baseUrl: "${host.url}/_sim/pagerduty", instance: new, credential: { routingKey: { env: NO_SUCH_KEY } } }`;
    writeFileSync(incomplete, ['tenant: initech', `people: [${IRENE}]`, 'connections:', connection].join('\n'));
    const { stdout } = await run('tenant', 'add', incomplete, '--out', folder);
    expect(stdout).toContain('[ ] set the environment variable NO_SUCH_KEY (credential of pagerduty)');
    expect(stdout).toContain(
      `Then continue: npx countersign tenant add ${incomplete} --url ${host.url} --out ${folder}`,
    );
  });
});
