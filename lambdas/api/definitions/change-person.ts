import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { type Clock, type Ids, isoNow } from '../../entry/ports.ts';
import { coversRightsOf, standIn } from '../../people/eligibility.ts';
import { hasIdentity, IDENTITY_SYSTEMS, type Person } from '../../people/people.ts';
import { provenanceOf, type RightsChange } from '../../people/provenance.ts';
import { effectiveRole, type Right } from '../../people/rights.ts';
import { widenings } from '../../people/widening.ts';
import {
  type ChangeAuthor,
  type ChangedOwner,
  changeAuthor,
  type PendingPerson,
} from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { type Caller, requirePerson, requireRight } from '../authorizer/caller.ts';
import { requestSecondOwner } from './second-owner.ts';

/** The stage's rules for changes of who may approve. */
export interface PeopleRules {
  /** A widened right counts only after this time. */
  coolDownMs: number;
  /** Changes that widen who may approve wait for a second owner. */
  secondOwner: boolean;
}

export interface PeopleChanger {
  definitions: Pick<
    Definitions,
    'people' | 'person' | 'savePerson' | 'wasDeleted' | 'requestChange' | 'pendingChanges' | 'deletePerson'
  >;
  clock: Clock;
  ids: Ids;
  peopleRules: PeopleRules;
}

/** Who makes a change, and when, for the history of changes. */
export const authorOf = (ports: { clock: Clock; ids: Ids }, { person }: Caller): ChangeAuthor =>
  changeAuthor(ports, person);

/**
 * The caller with the rights they have at this moment, and all people of the tenant. The router has checked the right
 * already; this check uses the people that the change is based on.
 */
export async function currentCaller(
  { definitions }: { definitions: Pick<Definitions, 'people'> },
  caller: Caller,
  right: Right,
): Promise<{ people: Person[]; current: Caller }> {
  const people = await definitions.people(caller.tenant);
  const person = people.find(({ id }) => id === caller.person);
  if (!person && !caller.machine) {
    throw new Problem(403, 'FORBIDDEN', `there is no person ${caller.person} any more; ask an owner to add you`);
  }
  const current = { ...caller, role: effectiveRole(caller.role, person) };
  requireRight(current, right);
  return { people, current };
}

/** Makes a change, or stores it until a second owner confirms it. */
export async function changePerson(
  ports: PeopleChanger,
  caller: Caller,
  people: readonly Person[],
  after: Person,
): Promise<{ person: Person } | { pending: PendingPerson }> {
  const by = authorOf(ports, caller);
  await assertValid(ports, caller.tenant, people, after);
  const before = people.find(({ id }) => id === after.id);
  const widens = widenings(before, after);
  if (widens.length > 0) requirePerson(caller, 'widen who may approve');
  if (widens.length > 0 && ports.peopleRules.secondOwner) {
    const requested = { kind: 'person' as const, person: after.id, before: before ?? null, after, widens };
    return {
      pending: await requestSecondOwner(ports, caller.tenant, by, { people, requested, before: before ?? null }),
    };
  }
  const { coolDownMs } = ports.peopleRules;
  const person = withProvenance(people, before, after, { changedBy: by.actor, at: by.at, coolDownMs });
  await ports.definitions.savePerson(caller.tenant, person, by, {
    replaces: before ?? null,
    ...remainingOwner(people, before, person),
  });
  return { person };
}

/** The changed person, with the people whom the widened rights depend on. */
export function withProvenance(
  people: readonly Person[],
  before: Person | undefined,
  { rights: _ignored, ...after }: Person,
  grant: RightsChange,
): Person {
  const given = provenanceOf(people, grant);
  const isSame = before && !changesRights(before, after);
  const rights = isSame ? before.rights : provenanceOf(people, { ...grant, before: before?.rights });
  const delegates = after.delegates?.map(
    ({ person }) => before?.delegates?.find((each) => each.person === person) ?? { person, rights: given },
  );
  return { ...after, ...(delegates && { delegates }), ...(rights && { rights }) };
}

/** Identities count too: they determine which writes a person made, so whose approval does not count. */
function changesRights(before: Person, after: Person): boolean {
  const names = (person: Person) => JSON.stringify([...person.identities].sort());
  return widenings(before, { ...after, delegates: before.delegates }).length > 0 || names(before) !== names(after);
}

/** Checks a person against the other people of the tenant. */
export async function assertValid(
  { definitions, clock }: Pick<PeopleChanger, 'definitions' | 'clock'>,
  tenant: string,
  people: readonly Person[],
  person: Person,
): Promise<void> {
  const others = people.filter(({ id }) => id !== person.id);
  const isNew = others.length === people.length;
  if (isNew && (await definitions.wasDeleted(tenant, person.id))) {
    throw new Problem(
      422,
      'PERSON_INVALID',
      `the ID ${person.id} belonged to a person who was deleted, and their API keys must not work for another; choose another ID`,
    );
  }
  if (!isNew && person.role !== 'owner') assertOwnerLeft(people, others);
  assertKnownSystems(person, people);
  assertOwnIdentities(person, others);
  assertDelegates(person, others);
  assertDelegateCanAct(person, others, isoNow(clock));
}

/** A tenant keeps at least one owner, because only an owner can make another one. */
export function assertOwnerLeft(people: readonly Person[], others: readonly Person[]): void {
  const isOwner = ({ role }: Person) => role === 'owner';
  if (!people.some(isOwner) || others.some(isOwner)) return;
  throw new Problem(422, 'PERSON_INVALID', 'this is the last owner; make somebody else an owner first');
}

/** For the write: the owner who remains if the change takes the role of another one. */
export function remainingOwner(people: readonly Person[], before: Person | undefined, after?: Person): ChangedOwner {
  if (before?.role !== 'owner' || after?.role === 'owner') return {};
  const [other] = people.filter(({ id, role }) => role === 'owner' && id !== before.id);
  return other ? { remainingOwner: other } : {};
}

/** A mistyped system would never match, and the person could approve what they requested there. */
function assertKnownSystems({ id, identities }: Person, people: readonly Person[]): void {
  const before = people.find((each) => each.id === id)?.identities ?? [];
  for (const identity of identities) {
    const [system = ''] = identity.split(':');
    if (IDENTITY_SYSTEMS.includes(system) || before.includes(identity)) continue;
    const hint = didYouMean(system, IDENTITY_SYSTEMS) || `; use ${IDENTITY_SYSTEMS.join(', ')}`;
    throw new Problem(422, 'PERSON_INVALID', `the identity ${identity} is of no known system${hint}`);
  }
}

/** With an identity of two people, one of them would count twice. */
function assertOwnIdentities({ id, identities }: Person, others: readonly Person[]): void {
  for (const other of others) {
    const shared = identities.find((identity) => hasIdentity(other, identity));
    if (shared)
      throw new Problem(
        422,
        'PERSON_INVALID',
        `the identity ${shared} belongs to ${other.id}; it cannot belong to ${id} too`,
      );
  }
}

function assertDelegates({ id, delegates = [] }: Person, others: readonly Person[]): void {
  const stranger = delegates.find(({ person }) => !others.some((other) => other.id === person));
  if (!stranger) return;
  throw new Problem(422, 'PERSON_INVALID', `there is no person ${stranger.person} who could decide for ${id}`);
}

/** Refuses absences without anybody who decides: no delegate, a delegate without the rights, a circle of delegates. */
function assertDelegateCanAct(person: Person, others: readonly Person[], now: string): void {
  if (!person.away || person.away.until <= now) return;
  const { delegate: id } = person.away;
  const delegate = others.find((other) => other.id === id);
  if (!delegate) {
    throw new Problem(422, 'PERSON_INVALID', `there is no person ${id} who could decide for ${person.id}`);
  }
  if (!coversRightsOf(delegate, person) && !person.delegates?.some((allowed) => allowed.person === id)) {
    throw new Problem(
      422,
      'PERSON_INVALID',
      `${id} may not approve everything that ${person.id} may; name somebody who may, or ask an owner to allow it: countersign people delegates ${person.id} --add ${id}`,
    );
  }
  if (standIn(person, [...others, person], now) === undefined) {
    throw new Problem(
      422,
      'PERSON_INVALID',
      `${id} is away too, and their delegates lead back to ${person.id}; name a delegate who is not away`,
    );
  }
}
