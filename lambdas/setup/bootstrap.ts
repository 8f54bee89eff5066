import * as z from 'zod';
import { didYouMean } from '../entry/did-you-mean.ts';
import { Person } from '../people/people.ts';
import { type ChangeAuthor, changeAuthor } from '../pipeline/definition-changes.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { CountersignError } from '../run/errors.ts';
import { EraseChanges, type ErasePorts, eraseChanges } from './erase-changes.ts';

const OWNERS_MAX = 10;

/** The owners of a tenant and the keys of their first requests. A key arrives as its hash: only its owner has it. */
export const AddOwners = z.strictObject({
  tenant: z.string(),
  owners: z
    .array(Person.pick({ id: true, name: true, identities: true }))
    .min(1)
    .max(OWNERS_MAX),
  keys: z
    .array(z.strictObject({ person: Person.shape.id, sha256: z.string().regex(/^[0-9a-f]{64}$/) }))
    .max(OWNERS_MAX),
});
export type AddOwners = z.infer<typeof AddOwners>;

export const BootstrapCall = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('describe') }),
  z.strictObject({ action: z.literal('addOwners'), request: AddOwners }),
  z.strictObject({ action: z.literal('eraseChanges'), request: EraseChanges }),
]);

export interface DescribedStage {
  stage: string;
  kind: 'prod' | 'staging' | 'dev';
  url: string;
  tenants: { tenant: string; owners: string[] }[];
}

export interface OwnersAdded {
  /** The ids of owners that did not exist before. */
  added: string[];
  existing: string[];
}

export interface BootstrapPorts extends ErasePorts {
  stage: Omit<DescribedStage, 'tenants'>;
  tenants: readonly string[];
  definitions: ErasePorts['definitions'] & Pick<Definitions, 'people' | 'savePerson' | 'wasDeleted'>;
  saveKey(tenant: string, key: { person: string; sha256: string }, by: ChangeAuthor): Promise<void>;
}

/** What operators can do before and beside the API. */
export function callBootstrap(ports: BootstrapPorts, call: z.infer<typeof BootstrapCall>): Promise<unknown> {
  switch (call.action) {
    case 'describe':
      return describeStage(ports);
    case 'addOwners':
      return addOwners(ports, call.request);
    case 'eraseChanges':
      assertTenant(ports, call.request.tenant);
      return eraseChanges(ports, call.request);
  }
}

export async function describeStage({ stage, tenants, definitions }: BootstrapPorts): Promise<DescribedStage> {
  const described = tenants.map(async (tenant) => {
    const people = await definitions.people(tenant);
    return { tenant, owners: people.filter(({ role }) => role === 'owner').map(({ id }) => id) };
  });
  return { ...stage, tenants: await Promise.all(described) };
}

/**
 * Adds owners that do not exist yet. Before there are two, nobody else could: the API needs a key, and in a prod stage a
 * second owner. Nobody granted their rights, so their approvals count for all writes at once.
 */
export async function addOwners(ports: BootstrapPorts, request: AddOwners): Promise<OwnersAdded> {
  const { definitions } = ports;
  const { tenant, owners, keys } = request;
  assertTenant(ports, tenant);
  const people = await definitions.people(tenant);
  const absent = owners.filter(({ id }) => !people.some((person) => person.id === id));
  const ownerIds = [...people.filter(({ role }) => role === 'owner'), ...absent].map(({ id }) => id);
  for (const { id } of owners) await assertMayBeOwner(ports, tenant, people, id);
  const stranger = keys.find(({ person }) => !ownerIds.includes(person));
  if (stranger) throw invalid(`${stranger.person} is not an owner of ${tenant}; only owners get a key here`);
  for (const { id, identities } of absent) {
    const taken = people.find((person) => person.identities.some((each) => identities.includes(each)));
    if (taken) throw invalid(`an identity of ${id} belongs to ${taken.id}`);
  }
  for (const owner of absent) {
    const person: Person = { ...owner, role: 'owner', tier: 'high', groups: [] };
    await definitions.savePerson(tenant, person, byOperator(ports), { replaces: null });
  }
  for (const key of keys) await ports.saveKey(tenant, key, byOperator(ports));
  const added = absent.map(({ id }) => id);
  return { added, existing: owners.map(({ id }) => id).filter((id) => !added.includes(id)) };
}

function assertTenant({ tenants }: BootstrapPorts, tenant: string): void {
  if (tenants.includes(tenant)) return;
  const known = didYouMean(tenant, tenants) || `; it has: ${tenants.join(', ')}`;
  throw new CountersignError('NOT_FOUND', `this stage has no tenant ${tenant}${known}. Add it in cdk.json and deploy`);
}

async function assertMayBeOwner(
  { definitions }: BootstrapPorts,
  tenant: string,
  people: readonly Person[],
  id: string,
): Promise<void> {
  const person = people.find((each) => each.id === id);
  if (person && person.role !== 'owner') {
    throw invalid(`${id} is a person of ${tenant} with the role ${person.role}; an owner can change that: people put`);
  }
  if (!person && (await definitions.wasDeleted(tenant, id))) {
    throw invalid(`the id ${id} belonged to a person who was deleted; choose another id`);
  }
}

const byOperator = (ports: BootstrapPorts): ChangeAuthor => changeAuthor(ports, 'operator');

const invalid = (message: string) => new CountersignError('INPUT_INVALID', message);
