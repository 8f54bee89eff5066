import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { Person } from '../../people/people.ts';
import { confirmedToo } from '../../people/provenance.ts';
import type { PendingChange } from '../../pipeline/definition-changes.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { type Paged, PageQuery, pageOf, readPage } from '../paging/paging.ts';
import { parseBody, parseQuery } from '../request.ts';
import type { Handlers } from '../router.ts';
import {
  acting,
  assertNoMachine,
  assertOwnerLeft,
  authorOf,
  changePerson,
  type PeopleChanger,
} from './change-person.ts';

/** Whom an owner allows to take somebody's place, and who vouches for a right, have routes of their own. */
const PersonBody = Person.omit({ id: true, delegates: true, rights: true });
/** Absent, or null to be back. */
const AwayBody = z.strictObject({ away: Person.shape.away.unwrap().nullable() });
const DELEGATES_MAX = 20;
const DelegatesBody = z.strictObject({ delegates: z.array(Person.shape.id).max(DELEGATES_MAX) });

export type PeopleApi = PeopleChanger & Paged;

export const PEOPLE_HANDLERS: Handlers<PeopleApi, 'people'> = {
  'GET /api/v1/people': list,
  'GET /api/v1/people/{id}': show,
  'PUT /api/v1/people/{id}': save,
  'DELETE /api/v1/people/{id}': remove,
  'PUT /api/v1/people/{id}/away': setAway,
  'PUT /api/v1/people/{id}/delegates': setDelegates,
  'POST /api/v1/people/{id}/confirm': confirm,
};

async function list(api: PeopleApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  // All of them are read for every decision: a tenant has no more than that bears.
  const all = await api.definitions.people(tenant);
  const page = await readPage(api, `${tenant}/people`, parseQuery(PageQuery, event), (place) =>
    pageOf(all, place, ({ id }) => id),
  );
  return json(200, { people: page.items, nextCursor: page.nextCursor });
}

async function show(api: PeopleApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  return json(200, known(await api.definitions.people(tenant), event));
}

async function save(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const people = await api.definitions.people(caller.tenant);
  const as = acting(people, caller);
  mayOrRefuse(as, 'define', 'change people');
  const named = Person.safeParse({ ...parseBody(PersonBody, event), id: event.pathParameters?.id });
  if (!named.success) throw new Problem(400, 'BAD_REQUEST', z.prettifyError(named.error));
  const before = people.find(({ id }) => id === named.data.id);
  const person: Person = { ...named.data, ...(before?.delegates && { delegates: before.delegates }) };
  assertMayChange(as, [person, before]);
  return answer(await changePerson(api, as, people, person));
}

/** Nothing of the person is left but the history: no key, identity or vote of theirs counts any more. */
async function remove(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const people = await api.definitions.people(caller.tenant);
  const as = acting(people, caller);
  mayOrRefuse(as, 'define', 'delete people');
  const person = known(people, event);
  assertMayChange(as, [person]);
  assertOwnerLeft(
    people,
    people.filter(({ id }) => id !== person.id),
  );
  await api.definitions.deletePerson(caller.tenant, person, authorOf(api, as));
  return json(200, { deleted: person.id });
}

/** Whoever goes away says so themselves, with a key that is theirs in full; or is said to by an admin. */
async function setAway(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const people = await api.definitions.people(caller.tenant);
  const { away: _before, ...person } = known(people, event);
  const as = acting(people, caller);
  if (as.person !== person.id || as.role !== person.role) mayOrRefuse(as, 'define', 'say that somebody else is away');
  const { away } = parseBody(AwayBody, event);
  return answer(await changePerson(api, as, people, { ...person, ...(away && { away }) }));
}

/** An owner lets these take the person's place with all its rights, whatever their own role allows. */
async function setDelegates(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const people = await api.definitions.people(caller.tenant);
  const as = acting(people, caller);
  mayOrRefuse(as, 'own', 'allow others to take the place of somebody');
  const person = known(people, event);
  // As if nobody else were behind it; `changePerson` works out on whom each permission depends.
  const rights = {
    changedBy: as.person,
    changedAt: isoNow(api.clock),
    countsFrom: isoNow(api.clock),
    dependsOn: [],
  };
  const ids = [...new Set(parseBody(DelegatesBody, event).delegates)];
  const delegates = ids.map((id) => ({ person: id, rights }));
  return answer(await changePerson(api, as, people, { ...person, delegates }));
}

/** Vouches for somebody, so that their votes count for what the people wrote who gave them their rights. */
async function confirm(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const people = await api.definitions.people(caller.tenant);
  const as = acting(people, caller);
  mayOrRefuse(as, 'define', 'confirm the rights of somebody');
  assertNoMachine(as, 'confirm the rights of somebody');
  const person = known(people, event);
  if (as.person === person.id) {
    throw new Problem(403, 'FORBIDDEN', 'only another person can confirm the rights of somebody');
  }
  assertMayChange(as, [person]);
  if (!person.rights || person.rights.dependsOn.length === 0) return json(200, person);
  const rights = confirmedToo(people, person.rights, as.person);
  if (rights.dependsOn.length === person.rights.dependsOn.length) {
    const on = rights.dependsOn.join(' and ');
    throw new Problem(
      422,
      'PERSON_INVALID',
      `your own rights depend on ${on} too; somebody who is independent of ${on} must confirm`,
    );
  }
  const confirmed = { ...person, rights };
  await api.definitions.savePerson(caller.tenant, confirmed, authorOf(api, as), { replaces: person });
  return json(200, confirmed);
}

function answer(changed: { person: Person } | { pending: PendingChange }): HttpResponse {
  if ('person' in changed) return json(200, changed.person);
  const { changeId } = changed.pending;
  const next = `another owner confirms it: countersign changes confirm ${changeId}`;
  return json(202, { pending: changed.pending, next });
}

function known(people: readonly Person[], event: HttpEvent): Person {
  const person = people.find(({ id }) => id === event.pathParameters?.id);
  if (!person) throw new Problem(404, 'NOT_FOUND', `there is nobody called ${event.pathParameters?.id}`);
  return person;
}

function assertMayChange(as: Caller, involved: readonly (Person | undefined)[]): void {
  if (as.role === 'owner' || !involved.some((each) => each?.role === 'owner')) return;
  throw new Problem(403, 'FORBIDDEN', 'only an owner may make somebody an owner, or change one');
}
