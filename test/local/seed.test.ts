import { expect, it } from 'vitest';
import { Person } from '../../lambdas/people/people.ts';
import { seedTenant } from '../../local/host/seed.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';

const WORLD = 'http://127.0.0.1:4500';

it('a first start creates the people, connections and automations of a tenant', async () => {
  const definitions = new MemoryDefinitions();
  await seedTenant(definitions, 'acme', WORLD);
  expect((await definitions.people('acme')).map(({ id }) => id)).toContain('ana');
  expect(await definitions.connection('acme', 'slack')).toMatchObject({ instance: 'T100ACME' });
  for (const { workflow } of await definitions.automations('acme')) {
    expect(await definitions.workflow('acme', workflow.name, workflow.version)).toMatchObject({ name: workflow.name });
  }
});

it('a later start keeps changes and adds missing records', async () => {
  const definitions = new MemoryDefinitions();
  await seedTenant(definitions, 'acme', WORLD);
  const triage = (await definitions.automations('acme')).find(({ name }) => name === 'triage-incident');
  const changed = { ...triage, enabled: false, workflow: { name: 'mine', version: 7 } } as NonNullable<typeof triage>;
  const ana = Person.parse({ id: 'ana', name: 'Ana', role: 'member' });
  const dora = Person.parse({ id: 'dora', name: 'Dora', role: 'approver', tier: 'low' });
  await definitions.saveAutomation('acme', changed);
  await definitions.savePerson('acme', ana);
  await definitions.savePerson('acme', dora);
  const people = await definitions.people('acme');
  const published = await definitions.newestWorkflows('acme', { limit: 100 });

  await seedTenant(definitions, 'acme', 'http://127.0.0.1:9999');
  expect(await definitions.people('acme')).toEqual(people);
  expect(await definitions.automations('acme')).toContainEqual(changed);
  expect(await definitions.newestWorkflows('acme', { limit: 100 })).toEqual(published);
  expect(await definitions.connection('acme', 'slack')).toMatchObject({ baseUrl: 'http://127.0.0.1:9999/_sim/slack' });
});
