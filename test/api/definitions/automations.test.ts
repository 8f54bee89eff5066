import { beforeEach, describe, expect, it } from 'vitest';
import { Person } from '../../../lambdas/people/people.ts';
import { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { byTest } from '../../fakes/by-test.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { MemorySchedules } from '../../fakes/memory/memory-schedules.ts';
import { askAbout } from './ask-definitions.ts';

const SHOW = 'GET /api/v1/automations/{name}';
const SAVE = 'PUT /api/v1/automations/{name}';

const TRIGGER = { source: 'github', event: 'issues.opened' };
const OTHER = { source: 'servicenow', event: 'incident.insert' };
const BASE = { triggers: [TRIGGER], workflow: { name: 'label', version: 1 } };

let definitions: MemoryDefinitions;
beforeEach(async () => {
  definitions = new MemoryDefinitions();
  const workflow = Workflow.parse({ name: 'label', steps: [{ id: 'a', tool: 'transform' }] });
  await definitions.publishWorkflow('acme', workflow, 1);
  await definitions.saveConnection('acme', { name: 'github', baseUrl: 'https://api.github.com', instance: 'github' });
  const person = { id: 'ana', name: 'Ana', role: 'operator', tier: 'low', groups: [], identities: [] };
  await definitions.savePerson('acme', Person.parse(person), byTest());
  const session = { provider: 'agent' as const, command: '/bin/true', environment: 'dev' as const, capabilities: [] };
  await definitions.saveConfiguration('acme', { name: 'triage', routing: 'triages', session, revision: 1 });
  await definitions.saveConfiguration('acme', { name: 'silent', session, revision: 1 });
});

const save = (body: object) => askAbout(definitions, SAVE, { id: 'triage-issues', body });

describe('an automation', () => {
  it('has several triggers, notifications, connections, caps, model and strategy', async () => {
    const body = {
      ...BASE,
      triggers: [TRIGGER, OTHER],
      notifications: [
        { type: 'slack_channel', channel: 'C0OPS' },
        { type: 'slack_dm_user', person: 'ana' },
      ],
      connections: ['github'],
      caps: { maxConcurrency: 2 },
      model: 'amazon.nova-lite-v1:0',
      configuration: { strategy: 'agent_decide', allow: ['triage', 'silent'], fallback: 'silent' },
    };
    const saved = await save(body);
    expect(saved.body).toMatchObject({ ...body, trigger: TRIGGER });
    expect((await askAbout(definitions, SHOW, { id: 'triage-issues' })).body).toMatchObject(body);
  });

  it('accepts one trigger as before, and is stored so that earlier releases can read it', async () => {
    const { triggers: _, ...rest } = BASE;
    expect((await save({ ...rest, trigger: TRIGGER })).body).toMatchObject({ trigger: TRIGGER, triggers: [TRIGGER] });
    const [stored] = await definitions.automations('acme');
    expect(stored).toMatchObject({ trigger: TRIGGER });
    expect(stored?.triggers).toBeUndefined();
  });

  it('can be sent back as it was read', async () => {
    const { effectiveWithinSeconds: _, ...read } = (await save({ ...BASE, triggers: [TRIGGER, OTHER] })).body;
    expect((await save(read)).body.triggers).toEqual([TRIGGER, OTHER]);
  });

  it.each([
    ['no trigger', { triggers: undefined }, 'at least one is needed'],
    ['an empty list of triggers', { triggers: [] }, 'triggers'],
    ['contradicting triggers', { trigger: OTHER }, 'it is not the first of triggers'],
    [
      'an unknown event in its second trigger',
      { triggers: [TRIGGER, { ...TRIGGER, event: 'issues.opend' }] },
      'triggers.1.event',
    ],
    ['an unknown connection', { connections: ['gihtub'] }, 'did you mean'],
    ['an unknown person', { notifications: [{ type: 'slack_dm_user', person: 'bob' }] }, 'there is no person bob'],
    ['an unknown kind of notification', { notifications: [{ type: 'mail' }] }, 'notifications'],
    [
      'an unknown configuration',
      { configuration: { strategy: 'fixed', default: 'gone' } },
      'there is no configuration gone',
    ],
    ['a fixed strategy without default', { configuration: { strategy: 'fixed' } }, 'configuration.default'],
    [
      'an empty allow-list',
      { configuration: { strategy: 'agent_decide', allow: [] } },
      'configuration.allow: must not be empty',
    ],
    [
      'an allow-list with an unknown configuration',
      { configuration: { strategy: 'agent_decide', allow: ['triage', 'gone'] } },
      'gone',
    ],
    [
      'an unknown fallback',
      { configuration: { strategy: 'agent_decide', allow: ['triage'], fallback: 'gone' } },
      'gone',
    ],
    [
      'an allow-list from which no model can pick',
      { configuration: { strategy: 'agent_decide', allow: ['silent'] } },
      'routing description',
    ],
  ])('with %s is refused', async (_, differing, said) => {
    await expect(save({ ...BASE, ...differing })).rejects.toMatchObject({ message: expect.stringContaining(said) });
    expect(await definitions.automations('acme')).toEqual([]);
  });

  it('is disabled and enabled by operators, which is in the history', async () => {
    await save(BASE);
    const as = { person: 'ana', role: 'operator' };
    const toggled = async (command: string) =>
      (await askAbout(definitions, `POST /api/v1/automations/{name}/${command}`, { id: 'triage-issues', as })).body
        .enabled;
    expect(await toggled('disable')).toBe(false);
    expect((await definitions.automations('acme'))[0]?.enabled).toBe(false);
    expect(await toggled('enable')).toBe(true);
    const { items } = await definitions.changes('acme', { limit: 2 }, { kind: 'automation' });
    expect(items.map(({ actor }) => actor)).toEqual(['ana', 'ana']);
  });

  it('is not enabled if what it names is gone', async () => {
    await save({ ...BASE, enabled: false, connections: ['github'] });
    const [connection] = await definitions.connections('acme');
    if (connection) await definitions.deleteConnection('acme', connection);
    const enabling = askAbout(definitions, 'POST /api/v1/automations/{name}/enable', { id: 'triage-issues' });
    await expect(enabling).rejects.toMatchObject({ message: expect.stringContaining('connection github') });
  });

  it('is deleted unless a schedule starts it', async () => {
    await save(BASE);
    const schedules = new MemorySchedules();
    const body = { automation: 'triage-issues', rate: '1 hour' };
    await askAbout(definitions, 'PUT /api/v1/schedules/{name}', { id: 'hourly', body, schedules });
    const remove = () => askAbout(definitions, 'DELETE /api/v1/automations/{name}', { id: 'triage-issues', schedules });
    await expect(remove()).rejects.toMatchObject({ status: 409, message: expect.stringContaining('hourly') });
    await askAbout(definitions, 'DELETE /api/v1/schedules/{name}', { id: 'hourly', schedules });
    expect((await remove()).body).toEqual({ deleted: 'triage-issues' });
    expect(await definitions.automations('acme')).toEqual([]);
  });

  it('keeps the configurations that it names from being deleted', async () => {
    await save({ ...BASE, configuration: { strategy: 'agent_decide', allow: ['triage'], fallback: 'silent' } });
    for (const id of ['triage', 'silent']) {
      const removing = askAbout(definitions, 'DELETE /api/v1/configurations/{name}', { id });
      await expect(removing).rejects.toMatchObject({ status: 409, message: expect.stringContaining('triage-issues') });
    }
  });
});
