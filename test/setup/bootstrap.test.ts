import { beforeEach, expect, it } from 'vitest';
import { type AddOwners, addOwners, type BootstrapPorts, describeStage } from '../../lambdas/setup/bootstrap.ts';
import { byTest } from '../fakes/by-test.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';

const HASH = 'a'.repeat(64);
const OLIVIA = { id: 'olivia', name: 'Olivia', identities: ['github:olivia'] };
const OTTO = { id: 'otto', name: 'Otto', identities: [] };

let definitions: MemoryDefinitions;
let keys: unknown[];
let ports: BootstrapPorts;
beforeEach(() => {
  definitions = new MemoryDefinitions();
  keys = [];
  ports = {
    stage: { stage: 'acme-prod', kind: 'prod', url: 'https://own.example.com' },
    tenants: ['acme', 'globex'],
    definitions,
    saveKey: async (tenant, key) => void keys.push({ tenant, ...key }),
    clock: new FakeClock(),
    ids: new CountingIds(),
  };
});

const add = (request: Partial<AddOwners>) => addOwners(ports, { tenant: 'acme', owners: [], keys: [], ...request });

it('creates owners whose approvals count at once, their keys, and entries of the operator in the history', async () => {
  const added = await add({ owners: [OLIVIA, OTTO], keys: [{ person: 'olivia', sha256: HASH }] });
  expect(added).toEqual({ added: ['olivia', 'otto'], existing: [] });
  expect(await definitions.people('acme')).toEqual([
    { ...OLIVIA, role: 'owner', tier: 'high', groups: [] },
    { ...OTTO, role: 'owner', tier: 'high', groups: [] },
  ]);
  expect(keys).toEqual([{ tenant: 'acme', person: 'olivia', sha256: HASH }]);
  const { items } = await definitions.changes('acme', { limit: 10 });
  expect(items.map(({ actor, action }) => [actor, action])).toEqual([
    ['operator', 'created'],
    ['operator', 'created'],
  ]);
  expect((await describeStage(ports)).tenants).toEqual([
    { tenant: 'acme', owners: ['olivia', 'otto'] },
    { tenant: 'globex', owners: [] },
  ]);
});

it('repeated, changes nothing; and adds the second owner that an interrupted run left out', async () => {
  await add({ owners: [OLIVIA] });
  const before = await definitions.changes('acme', { limit: 10 });
  expect(await add({ owners: [{ ...OLIVIA, name: 'Olivia Changed' }] })).toEqual({ added: [], existing: ['olivia'] });
  expect(await definitions.changes('acme', { limit: 10 })).toEqual(before);
  expect(await add({ owners: [OLIVIA, OTTO] })).toEqual({ added: ['otto'], existing: ['olivia'] });
});

it.each<[string, Partial<AddOwners>, string]>([
  ['an unknown tenant', { tenant: 'acmee', owners: [OLIVIA] }, 'did you mean "acme"?'],
  ['a person with another role', { owners: [{ ...OTTO, id: 'ana' }] }, 'with the role member'],
  ['a key for nobody', { owners: [OLIVIA], keys: [{ person: 'eve', sha256: HASH }] }, 'eve is not an owner'],
  ['an identity of somebody else', { owners: [{ ...OTTO, identities: ['github:ana'] }] }, 'belongs to ana'],
  ['the id of a deleted person', { owners: [{ ...OTTO, id: 'former' }] }, 'was deleted'],
])('refuses %s and creates nothing', async (_what, request, expected) => {
  const rest = { tier: 'low' as const, groups: [], role: 'member' as const };
  const former = { id: 'former', name: 'F', identities: [], ...rest };
  await definitions.savePerson('acme', { id: 'ana', name: 'Ana', identities: ['github:ana'], ...rest });
  await definitions.savePerson('acme', former);
  await definitions.deletePerson('acme', former, byTest({ actor: 'olivia' }));
  const before = JSON.stringify(await definitions.people('acme'));
  await expect(add(request)).rejects.toThrow(expected);
  expect(JSON.stringify(await definitions.people('acme'))).toBe(before);
  expect(keys).toEqual([]);
});
