import { closeNameOr } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import type { Person } from '../../people/people.ts';
import { withConfirmation } from '../../people/provenance.ts';
import type { PendingPerson } from '../../pipeline/definition-changes.ts';
import { type Caller, requireRight } from '../authorizer/caller.ts';
import type { peopleRoutes } from '../contract/definitions/people.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';
import {
  assertOwnerLeft,
  authorOf,
  changePerson,
  currentCaller,
  type PeopleChanger,
  remainingOwner,
} from './change-person.ts';
import { accepted } from './second-owner.ts';

export type PeoplePorts = PeopleChanger & Paged;

export const peopleHandlers: Handlers<PeoplePorts, typeof peopleRoutes> = {
  async listPeople(ports, { caller: { tenant }, query }) {
    // Every decision reads all of them too, so a tenant has few.
    const all = await ports.definitions.people(tenant);
    const page = await readPage(ports, `${tenant}/people`, query, (place) => pageOf(all, place, ({ id }) => id));
    return { status: 200, body: { people: page.items, nextCursor: page.nextCursor } };
  },

  async getPerson({ definitions }, { caller: { tenant }, params }) {
    const person = await definitions.person(tenant, params.id);
    return { status: 200, body: person ?? known(await definitions.people(tenant), params.id) };
  },

  async savePerson(ports, { caller, params: { id }, body }) {
    const { people, current } = await currentCaller(ports, caller, 'people:write');
    const before = people.find((person) => person.id === id);
    const person: Person = { ...body, id, ...(before?.delegates && { delegates: before.delegates }) };
    assertMayChange(current, [person, before]);
    return changed(await changePerson(ports, current, people, person));
  },

  /** The history of changes keeps the person. Their keys, identities and votes no longer count. */
  async deletePerson(ports, { caller, params }) {
    const { people, current } = await currentCaller(ports, caller, 'people:write');
    const person = known(people, params.id);
    assertMayChange(current, [person]);
    assertOwnerLeft(
      people,
      people.filter(({ id }) => id !== person.id),
    );
    const how = remainingOwner(people, person);
    await ports.definitions.deletePerson(caller.tenant, person, authorOf(ports, current), how);
    return { status: 200, body: { deleted: person.id } };
  },

  /** People set their own absence, with a key that has their full role. For others it takes the right to change people. */
  async setAway(ports, { caller, params, body: { away } }) {
    const { people, current } = await currentCaller(ports, caller, 'people:set-away');
    const { away: _before, ...person } = known(people, params.id);
    if (current.person !== person.id || current.role !== person.role) requireRight(current, 'people:write');
    return changed(await changePerson(ports, current, people, { ...person, ...(away && { away }) }));
  },

  async setDelegates(ports, { caller, params, body }) {
    const { people, current } = await currentCaller(ports, caller, 'people:delegate');
    const person = known(people, params.id);
    const now = isoNow(ports.clock);
    // `changePerson` determines whom each permission depends on.
    const rights = { changedBy: current.person, changedAt: now, countsFrom: now, dependsOn: [] };
    const delegates = [...new Set(body.delegates)].map((id) => ({ person: id, rights }));
    return changed(await changePerson(ports, current, people, { ...person, delegates }));
  },

  /** After it, the person's votes also count for writes of the people who granted the rights. */
  async confirmPerson(ports, { caller, params }) {
    const { people, current } = await currentCaller(ports, caller, 'people:write');
    const person = known(people, params.id);
    if (current.person === person.id) {
      throw new Problem(403, 'FORBIDDEN', 'you cannot confirm your own rights; ask another person');
    }
    assertMayChange(current, [person]);
    if (!person.rights || person.rights.dependsOn.length === 0) return { status: 200, body: person };
    const rights = withConfirmation(people, person.rights, current.person);
    if (rights.dependsOn.length === person.rights.dependsOn.length) {
      const on = rights.dependsOn.join(' and ');
      throw new Problem(
        422,
        'PERSON_INVALID',
        `your own rights depend on ${on} too; somebody who is independent of ${on} must confirm`,
      );
    }
    const confirmed = { ...person, rights };
    await ports.definitions.savePerson(caller.tenant, confirmed, authorOf(ports, current), { replaces: person });
    return { status: 200, body: confirmed };
  },
};

function changed(change: { person: Person } | { pending: PendingPerson }) {
  if ('person' in change) return { status: 200 as const, body: change.person };
  return accepted(change.pending);
}

function known(people: readonly Person[], id: string): Person {
  const person = people.find((each) => each.id === id);
  if (person) return person;
  const ids = people.map((each) => each.id);
  throw new Problem(404, 'NOT_FOUND', `there is no person ${id}${closeNameOr('people list', id, ids)}`);
}

function assertMayChange(current: Caller, involved: readonly (Person | undefined)[]): void {
  if (current.role === 'owner' || !involved.some((each) => each?.role === 'owner')) return;
  throw new Problem(403, 'FORBIDDEN', 'only an owner may make somebody an owner, or change an owner');
}
