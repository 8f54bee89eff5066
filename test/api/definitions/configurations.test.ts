import { beforeEach, describe, expect, it } from 'vitest';
import type { StoredConfiguration } from '../../../lambdas/pipeline/configuration.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { byTest } from '../../fakes/by-test.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { askAbout } from './ask-definitions.ts';

const LIST = 'GET /api/v1/configurations';
const SHOW = 'GET /api/v1/configurations/{name}';
const SAVE = 'PUT /api/v1/configurations/{name}';
const DELETE = 'DELETE /api/v1/configurations/{name}';

const A2A = { provider: 'a2a', url: 'https://triage.example.com', connection: 'triage-agent' };
const AGENT = { provider: 'agent', command: '/bin/true', environment: 'staging' };

let definitions: MemoryDefinitions;
beforeEach(async () => {
  definitions = new MemoryDefinitions();
  const connection = { name: 'triage-agent', baseUrl: 'https://triage.example.com', instance: 'triage' };
  await definitions.saveConnection('acme', connection, byTest());
});

describe('configurations of sessions', () => {
  it('are created, listed, shown, changed and deleted; each change is in the history with its author', async () => {
    const created = await askAbout(definitions, SAVE, {
      id: 'triage',
      body: { routing: 'triages issues', session: A2A },
    });
    expect(created).toEqual({
      status: 200,
      body: { name: 'triage', routing: 'triages issues', session: A2A, author: 'olivia', revision: 1 },
    });
    await askAbout(definitions, SAVE, { id: 'repair', body: { session: AGENT } });
    const page = await askAbout(definitions, LIST, { query: { limit: '1' } });
    expect(page.body.configurations.map((each: { name: string }) => each.name)).toEqual(['repair']);
    const next = await askAbout(definitions, LIST, { query: { limit: '1', cursor: page.body.nextCursor } });
    expect(next.body).toMatchObject({ configurations: [{ name: 'triage' }], nextCursor: null });
    expect((await askAbout(definitions, SHOW, { id: 'repair' })).body.session).toEqual({ ...AGENT, capabilities: [] });
    const changed = await askAbout(definitions, SAVE, {
      id: 'repair',
      body: { session: AGENT, instructions: 'Be brief' },
    });
    expect(changed.body.revision).toBe(2);
    expect((await askAbout(definitions, DELETE, { id: 'repair' })).body).toEqual({ deleted: 'repair' });
    const { items } = await definitions.changes('acme', { limit: 5 }, { kind: 'configuration', name: 'repair' });
    expect(items.map(({ action, actor }) => [action, actor])).toEqual([
      ['deleted', 'olivia'],
      ['changed', 'olivia'],
      ['created', 'olivia'],
    ]);
  });

  it('refuse a change of a revision that another person has replaced', async () => {
    await askAbout(definitions, SAVE, { id: 'triage', body: { session: AGENT } });
    await askAbout(definitions, SAVE, { id: 'triage', body: { session: AGENT, routing: 'first', revision: 1 } });
    await expect(
      askAbout(definitions, SAVE, { id: 'triage', body: { session: AGENT, routing: 'second', revision: 1 } }),
    ).rejects.toMatchObject({ status: 409, message: expect.stringContaining('is at revision 2, not at 1') });
    await expect(askAbout(definitions, DELETE, { id: 'triage', query: { revision: '1' } })).rejects.toMatchObject({
      status: 409,
    });
    expect(await definitions.configuration('acme', 'triage')).toMatchObject({ routing: 'first', revision: 2 });
  });

  it('name who last changed where sessions run or their instructions; other changes do not replace the author', async () => {
    const stored = { name: 'repair', ...{ session: { ...AGENT, capabilities: [] }, revision: 1, author: 'otto' } };
    await definitions.saveConfiguration('acme', stored as StoredConfiguration, byTest());
    const save = async (body: object) => (await askAbout(definitions, SAVE, { id: 'repair', body })).body.author;
    expect(await save({ session: AGENT, description: 'repairs', routing: 'repairs things' })).toBe('otto');
    expect(await save({ session: AGENT, instructions: 'Delete everything.' })).toBe('olivia');
    await definitions.saveConfiguration('acme', { ...stored, revision: 3 } as StoredConfiguration, byTest());
    expect(await save({ session: { ...AGENT, command: '/bin/false' } })).toBe('olivia');
  });

  it('can be saved as they are shown; that makes nobody their author', async () => {
    const stored = { name: 'repair', ...{ session: { ...AGENT, capabilities: [] }, revision: 1, author: 'otto' } };
    await definitions.saveConfiguration('acme', stored as StoredConfiguration, byTest());
    const { body: shown } = await askAbout(definitions, SHOW, { id: 'repair' });
    const body = { ...shown, author: 'mallory', routing: 'repairs things' };
    expect((await askAbout(definitions, SAVE, { id: 'repair', body })).body).toEqual({
      ...body,
      author: 'otto',
      revision: 2,
    });
  });

  it('keep their revision if nothing changes', async () => {
    for (let times = 0; times < 2; times += 1) {
      const saved = await askAbout(definitions, SAVE, { id: 'triage', body: { session: AGENT } });
      expect(saved.body.revision).toBe(1);
    }
    expect((await definitions.changes('acme', { limit: 5 }, { kind: 'configuration' })).items).toHaveLength(1);
  });

  it.each([
    ['an address of metadata', { session: { ...A2A, url: 'https://169.254.169.254/latest' } }, 'is for https://triage'],
    ['another address than its connection', { session: { ...A2A, url: 'https://triage.example.org' } }, 'is for https'],
    ['an address without TLS', { session: { ...A2A, url: 'http://triage.example.com' } }, 'https'],
    ['an address with a password', { session: { ...A2A, url: 'https://me:pass@triage.example.com' } }, 'without user'],
    ['an address with a query', { session: { ...A2A, url: 'https://triage.example.com/?a=1' } }, 'without user'],
    ['a connection that does not exist', { session: { ...A2A, connection: 'triage-agnet' } }, 'did you mean'],
    ['a command with the profile of another environment', { session: { ...AGENT, profile: 'dev-flex' } }, 'profile'],
    [
      'a command of prod without a rollback',
      { session: { ...AGENT, environment: 'prod' } },
      'prod profiles need a rollback',
    ],
    ['an agent without a command', { session: { provider: 'agent', environment: 'dev' } }, 'session.command'],
    ['a command by a relative path', { session: { ...AGENT, command: 'triage' } }, 'absolute path'],
    ['an unknown provider', { session: { provider: 'mail' } }, 'session'],
    ['an empty routing description', { session: AGENT, routing: '  ' }, 'routing'],
    ['another name than the path', { session: AGENT, name: 'other' }, 'the path has triage'],
    ['an unknown field', { session: AGENT, rooting: 'x' }, 'routing'],
  ])('with %s are refused', async (_, body, said) => {
    await expect(askAbout(definitions, SAVE, { id: 'triage', body })).rejects.toMatchObject({
      message: expect.stringContaining(said),
    });
    expect(await definitions.configurations('acme')).toEqual([]);
  });

  it('are not deleted while the workflow of an enabled automation names them', async () => {
    await askAbout(definitions, SAVE, { id: 'triage', body: { session: AGENT } });
    const file =
      'name: triage\nsteps:\n  - id: triage\n    tool: agent.session\n' +
      '    with: { configuration: triage, prompt: Triage the issue. }\n';
    await definitions.publishWorkflow('acme', parseWorkflow(file, 'f'), 1);
    const automation = {
      ...{ name: 'triage-all', workspace: 'default', trigger: { source: 'github', event: 'issues.opened' } as const },
      workflow: { name: 'triage', version: 1 },
    };
    await definitions.saveAutomation('acme', { ...automation, enabled: true });
    await expect(askAbout(definitions, DELETE, { id: 'triage' })).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/triage: triage-all; disable them first: countersign automations disable/),
    });
    expect(await definitions.configuration('acme', 'triage')).toBeDefined();
    await definitions.saveAutomation('acme', { ...automation, enabled: false });
    expect((await askAbout(definitions, DELETE, { id: 'triage' })).body).toEqual({ deleted: 'triage' });
  });

  it('that do not exist are 404, with the nearest name', async () => {
    await askAbout(definitions, SAVE, { id: 'triage', body: { session: AGENT } });
    await expect(askAbout(definitions, SHOW, { id: 'traige' })).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('triage'),
    });
  });
});
