import { beforeEach, describe, expect, it } from 'vitest';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { byTest } from '../fakes/by-test.ts';
import { GITHUB, SetupWorld } from './setup-world.ts';

let world: SetupWorld;
beforeEach(() => {
  world = new SetupWorld();
});

describe('a saved connection', () => {
  it('has its address in the table, its credential in the secret, and neither response nor history shows the credential', async () => {
    world.documents.set('acme', 'connections', { unused: 'generated', http: { hosts: {} } }, 'v0');
    const planCredential = { token: 'ghp_plan_token' };
    const saved = await world.save('github', { ...GITHUB, baseUrl: 'https://api.github.com/', planCredential });
    expect(saved).toMatchObject({
      status: 200,
      body: { baseUrl: 'https://api.github.com', credential: { state: 'set' }, planCredential: { state: 'set' } },
    });
    expect((await world.documents.read('acme', 'connections')).entries).toEqual({
      http: { hosts: {} },
      github: { token: 'ghp_first_token', forAddress: 'https://api.github.com' },
    });
    expect((await world.documents.read('acme', 'plan-connections')).entries).toMatchObject({ github: planCredential });
    const listed = await world.ask('GET /api/v1/connections');
    const history = await world.changes();
    expect(history.map(({ actor, kind, name, action }) => [actor, kind, name, action])).toEqual(
      expect.arrayContaining([
        ['olivia', 'connection', 'github', 'created'],
        ['olivia', 'credential', 'connections/github', 'created'],
        ['olivia', 'credential', 'plan-connections/github', 'created'],
      ]),
    );
    for (const shown of [saved.text, listed.text, JSON.stringify(history)]) expect(shown).not.toMatch(/ghp_/);
  });

  it('saved again unchanged, writes no secret and no history', async () => {
    await world.save('github', GITHUB);
    const { version } = await world.documents.read('acme', 'connections');
    const before = await world.changes();
    expect((await world.save('github', GITHUB)).status).toBe(200);
    expect((await world.documents.read('acme', 'connections')).version).toBe(version);
    expect(await world.changes()).toEqual(before);
  });

  it('keeps its credential if only its instance changes', async () => {
    await world.save('github', GITHUB);
    const { credential: _unchanged, ...others } = GITHUB;
    const saved = await world.save('github', { ...others, instance: 'ghe' });
    expect(saved.body).toMatchObject({ instance: 'ghe', credential: { state: 'set' } });
  });

  it('gets another address only together with its credentials, which could otherwise be sent anywhere', async () => {
    await world.save('github', { ...GITHUB, planCredential: { token: 'ghp_plan_token' } });
    const moved = { baseUrl: 'https://evil.example.com', instance: 'github.com' };
    expect(await world.save('github', moved)).toMatchObject({ status: 422, body: { code: 'CONNECTION_INVALID' } });
    const half = await world.save('github', { ...moved, credential: { token: 'ghp_second_token' } });
    expect(half).toMatchObject({ status: 422, text: expect.stringContaining('send planCredential again, or null') });
    expect(await world.definitions.connection('acme', 'github')).toMatchObject({ baseUrl: GITHUB.baseUrl });
    expect((await world.documents.read('acme', 'connections')).entries).toMatchObject({
      github: { token: 'ghp_first_token' },
    });
    const whole = { ...moved, credential: { token: 'ghp_second_token' }, planCredential: null };
    expect((await world.save('github', whole)).body).toMatchObject({
      credential: { state: 'set' },
      planCredential: { state: 'missing' },
    });
  });
});

it('a new connection does not get a credential that somebody stored before it, for an address that is not known', async () => {
  world.documents.set('acme', 'connections', { github: { token: 'ghp_of_the_operator' } }, 'v0');
  const theirs = { baseUrl: 'https://evil.example.com', instance: 'github.com' };
  const refused = await world.save('github', theirs);
  expect(refused).toMatchObject({ status: 422, text: expect.stringContaining('send credential again') });
  expect(await world.definitions.connection('acme', 'github')).toBeUndefined();
  expect((await world.save('github', GITHUB)).status).toBe(200);
});

describe('an agent of sessions', () => {
  const AGENT = { baseUrl: 'https://triage.example.com', instance: 'triage', credential: { token: 'agent_token' } };

  it('is connected under a name of its own, with a token', async () => {
    expect(await world.save('triage-agent', AGENT)).toMatchObject({
      status: 200,
      body: { name: 'triage-agent', credential: { state: 'set' } },
    });
    expect((await world.documents.read('acme', 'connections')).entries).toMatchObject({
      'triage-agent': { token: 'agent_token', forAddress: 'https://triage.example.com' },
    });
    const { body } = await world.ask('GET /api/v1/connections');
    expect(body.connections).toMatchObject([{ name: 'triage-agent', credential: { state: 'set' } }]);
    const tested = await world.ask('POST /api/v1/connections/{name}/test', { params: { name: 'triage-agent' } });
    expect(tested).toMatchObject({ status: 200, body: { ok: true } });
  });

  it('is not deleted while a configuration uses it', async () => {
    await world.save('triage-agent', AGENT);
    const session = { provider: 'a2a' as const, url: AGENT.baseUrl, connection: 'triage-agent' };
    await world.definitions.saveConfiguration('acme', { name: 'triage', session, revision: 1 });
    const remove = () => world.ask('DELETE /api/v1/connections/{name}', { params: { name: 'triage-agent' } });
    expect(await remove()).toMatchObject({ status: 409, text: expect.stringContaining('triage; change them first') });
    const stored = await world.definitions.configuration('acme', 'triage');
    if (stored) await world.definitions.deleteConfiguration('acme', stored, byTest());
    expect((await remove()).status).toBe(200);
    expect((await world.documents.read('acme', 'connections')).entries).not.toHaveProperty('triage-agent');
  });
});

describe('is refused with what to write instead, and changes nothing', () => {
  it.each([
    ['githab', {}, 'did you mean "github"?'],
    ['bedrock', {}, 'is not a name of a connection'],
    ['Triage_Agent', {}, 'a name of your own for an agent of sessions, like triage-agent'],
    ['triage-agent', { credential: { botToken: 'x' } }, 'needs a credential { token }'],
    ['triage-agent', { baseUrl: 'https://169.254.169.254' }, 'is not a public host name'],
    ['triage-agent', { baseUrl: 'http://triage.example.com' }, 'must begin with https://'],
    ['github', { baseUrl: 'http://api.github.com' }, 'must begin with https://'],
    ['github', { baseUrl: 'https://bot:pw@api.github.com' }, 'without a user'],
    ['github', { baseUrl: 'https://169.254.169.254' }, 'is not a public host name'],
    ['github', { baseUrl: 'https://localhost' }, 'is not a public host name'],
    ['github', { baseUrl: 'https://api.github.com?a=b' }, 'remove "?"'],
    ['github', { instance: 'a b' }, 'instance: use letters'],
    ['github', { allowedHosts: ['a.example.com'] }, 'only the connection http has it'],
    ['github', { credential: { tokn: 'x' } }, 'the github credential needs "token"'],
    ['github', { credential: { token: '' } }, 'token is empty'],
    ['github', { credential: { token: 'ghp_1\n' } }, 'white space'],
    ['github', { planCredential: { appId: 1, installationId: 2, privateKeyPem: 'x' } }, 'not an RSA private key'],
    ['github', { bseUrl: 'x' }, 'did you mean `baseUrl`?'],
    ['slack', { instance: 'acme', credential: { botToken: 'xoxb-1' } }, 'is not a team id'],
    ['slack', { instance: 'T0ACME', credential: { botToken: 'xoxe-1' } }, 'token rotation'],
    ['http', { allowedHosts: ['https://a.example.com'] }, 'without https://'],
  ])('%s with %j', async (name, wrong, expected) => {
    const refused = await world.save(name, { ...GITHUB, ...wrong });
    expect([400, 422]).toContain(refused.status);
    expect(refused.text).toContain(expected);
    expect(await world.definitions.connections('acme')).toEqual([]);
    expect(await world.changes()).toEqual([]);
  });

  it('never quotes the credential', async () => {
    const refused = await world.save('github', { ...GITHUB, credential: { token: 'canary-value ' } });
    expect(refused.text).not.toContain('canary-value');
  });
});

describe('deleting a connection', () => {
  it('deletes its credentials and leaves those of others', async () => {
    await world.save('github', { ...GITHUB, planCredential: { token: 'ghp_plan_token' } });
    await world.save('servicenow', {
      baseUrl: 'https://acme.service-now.com',
      instance: 'acme',
      credential: { username: 'countersign', password: 'pw' },
    });
    const deleted = await world.ask('DELETE /api/v1/connections/{name}', { params: { name: 'github' } });
    expect(deleted).toMatchObject({ status: 200, body: { deleted: 'github' } });
    const { entries = {} } = await world.documents.read('acme', 'connections');
    expect(Object.keys(entries)).toEqual(['servicenow']);
    expect((await world.documents.read('acme', 'plan-connections')).entries).toEqual({});
    expect((await world.definitions.connections('acme')).map(({ name }) => name)).toEqual(['servicenow']);
  });

  it('is refused while an enabled automation uses it', async () => {
    await world.save('github', GITHUB);
    const file =
      'name: label\nsteps:\n  - id: add\n    tool: github.labels.add\n    with: { owner: a, repo: b, number: 1, labels: [x] }\n';
    await world.definitions.publishWorkflow('acme', parseWorkflow(file, 'f'), 1);
    await world.definitions.saveAutomation('acme', {
      name: 'label-all',
      enabled: true,
      workspace: 'default',
      trigger: { source: 'github', event: 'issues.opened' },
      workflow: { name: 'label', version: 1 },
    });
    const refused = await world.ask('DELETE /api/v1/connections/{name}', { params: { name: 'github' } });
    expect(refused).toMatchObject({ status: 409, text: expect.stringContaining('label-all') });
    expect(await world.definitions.connection('acme', 'github')).toBeDefined();
  });

  it('is refused while the session of an enabled automation may use it', async () => {
    await world.save('github', GITHUB);
    const file =
      'name: triage\nsteps:\n  - id: triage\n    tool: agent.session\n' +
      '    with: { configuration: triage, prompt: Triage the issue., actions: [{ tool: github.labels.add }] }\n';
    await world.definitions.publishWorkflow('acme', parseWorkflow(file, 'f'), 1);
    const automation = {
      ...{ name: 'triage-all', workspace: 'default', trigger: { source: 'github', event: 'issues.opened' } as const },
      workflow: { name: 'triage', version: 1 },
    };
    const remove = () => world.ask('DELETE /api/v1/connections/{name}', { params: { name: 'github' } });
    await world.definitions.saveAutomation('acme', { ...automation, enabled: true });
    expect(await remove()).toMatchObject({ status: 409, text: expect.stringContaining('triage-all') });
    await world.definitions.saveAutomation('acme', { ...automation, enabled: false });
    expect(await remove()).toMatchObject({ status: 200 });
  });

  it('names the nearest connection if there is none with this name', async () => {
    await world.save('github', GITHUB);
    const refused = await world.ask('DELETE /api/v1/connections/{name}', { params: { name: 'gihub' } });
    expect(refused).toMatchObject({ status: 404, text: expect.stringContaining('did you mean "github"?') });
  });
});

describe('concurrent changes', () => {
  it('of different credentials in one secret lose none of them', async () => {
    const { publish } = world.documents;
    let raced = false;
    world.documents.publish = async (...args) => {
      // Between reading and publishing, somebody else changes another entry.
      if (!raced) {
        raced = true;
        const { entries = {} } = await world.documents.read('acme', 'connections');
        world.documents.set('acme', 'connections', { ...entries, http: { hosts: {} } }, 'raced');
      }
      return publish.apply(world.documents, args);
    };
    expect((await world.save('github', GITHUB)).status).toBe(200);
    const { entries = {} } = await world.documents.read('acme', 'connections');
    expect(Object.keys(entries).sort()).toEqual(['github', 'http']);
  });

  it('that never end are refused as a conflict', async () => {
    world.documents.publish = async () => false;
    expect(await world.save('github', GITHUB)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
    expect(await world.definitions.connection('acme', 'github')).toBeUndefined();
  });
});

it('a secret that is no JSON object is reported, and the next saved credential replaces it', async () => {
  world.documents.set('acme', 'connections', undefined);
  await world.definitions.saveConnection('acme', { name: 'github', baseUrl: GITHUB.baseUrl, instance: 'github.com' });
  const read = () => world.ask('GET /api/v1/connections/{name}', { params: { name: 'github' } });
  expect((await read()).body.credential).toEqual({
    state: 'malformed',
    problem: 'the secret connections is not a JSON object',
  });
  await world.save('github', GITHUB);
  expect((await read()).body.credential).toEqual({ state: 'set' });
});

it('a test says whether a finding is an error', async () => {
  await world.save('github', GITHUB);
  const test = () => world.ask('POST /api/v1/connections/{name}/test', { params: { name: 'github' } });
  world.findings = [{ level: 'warning', credential: 'planCredential', text: 'none' }];
  expect((await test()).body).toEqual({ name: 'github', ok: true, findings: world.findings });
  world.findings = [{ level: 'error', credential: 'credential', text: 'rejected' }];
  expect((await test()).body).toMatchObject({ ok: false });
});
