import * as z from 'zod';
import { standIn } from '../approval/eligibility.ts';
import { effectiveRole, Person } from '../approval/people.ts';
import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Answers } from './answers.ts';
import type { Caller } from './api-keys.ts';
import { mayOrRefuse } from './caller.ts';
import { type Paged, PageQuery, pageOf, readPage } from './paging.ts';
import { parseBody, parseQuery } from './request.ts';

const PersonBody = Person.omit({ id: true });
/** Absent, or null to be back. */
const AwayBody = z.strictObject({ away: Person.shape.away.unwrap().nullable() });

export interface PeopleApi extends Paged {
  definitions: Pick<Definitions, 'people' | 'savePerson'>;
  clock: Clock;
}

export const PEOPLE_ANSWERS: Answers<PeopleApi, 'people'> = {
  'GET /api/v1/people': list,
  'GET /api/v1/people/{id}': show,
  'PUT /api/v1/people/{id}': save,
  'PUT /api/v1/people/{id}/away': setAway,
};

async function list(api: PeopleApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  // All of them are read for every decision: a tenant has no more than that bears.
  const all = await api.definitions.people(tenant);
  const page = await readPage(api, `${tenant}/people`, parseQuery(PageQuery, event), (place) =>
    pageOf(all, place, ({ id }) => id),
  );
  return json(200, { people: page.items, nextCursor: page.nextCursor });
}

async function show(api: PeopleApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  return json(200, known(await api.definitions.people(tenant), event));
}

async function save(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const people = await api.definitions.people(caller.tenant);
  const as = acting(people, caller);
  mayOrRefuse(as, 'define', 'change people');
  const named = Person.safeParse({ ...parseBody(PersonBody, event), id: event.pathParameters?.id });
  if (!named.success) throw new Problem(400, 'BAD_REQUEST', z.prettifyError(named.error));
  const person = named.data;
  const others = people.filter(({ id }) => id !== person.id);
  const before = people.find(({ id }) => id === person.id);
  if ([person, before].some((each) => each?.role === 'owner') && as.role !== 'owner') {
    throw new Problem(403, 'FORBIDDEN', 'only an owner may make somebody an owner, or change one');
  }
  assertOwnIdentities(person, others);
  assertSomebodyActs(person, others, isoNow(api.clock));
  await api.definitions.savePerson(caller.tenant, person);
  return json(200, person);
}

/** Whoever goes away says so themselves, with a key that is theirs in full; or is said to by an admin. */
async function setAway(api: PeopleApi, caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const people = await api.definitions.people(caller.tenant);
  const { away: _before, ...person } = known(people, event);
  const as = acting(people, caller);
  if (as.person !== person.id || as.role !== person.role) mayOrRefuse(as, 'define', 'say that somebody else is away');
  const { away } = parseBody(AwayBody, event);
  const changed: Person = { ...person, ...(away && { away }) };
  assertSomebodyActs(
    changed,
    people.filter(({ id }) => id !== person.id),
    isoNow(api.clock),
  );
  await api.definitions.savePerson(caller.tenant, changed);
  return json(200, changed);
}

/** Who calls, with the rights they have at this moment: a minute's delay would let a demoted admin take them back. */
const acting = (people: readonly Person[], caller: Caller): Caller => ({
  ...caller,
  role: effectiveRole(
    caller.role,
    people.find(({ id }) => id === caller.person),
  ),
});

function known(people: readonly Person[], event: HttpEvent): Person {
  const person = people.find(({ id }) => id === event.pathParameters?.id);
  if (!person) throw new Problem(404, 'NOT_FOUND', `there is nobody called ${event.pathParameters?.id}`);
  return person;
}

/** An identity of two people would let one of them be counted twice. */
function assertOwnIdentities({ id, identities }: Person, others: readonly Person[]): void {
  for (const other of others) {
    const shared = identities.find((identity) => other.identities.includes(identity));
    if (shared) throw new Problem(422, 'PERSON_INVALID', `${shared} is ${other.id}; it cannot be ${id} too`);
  }
}

/** A delegate who is away themselves passes the place on; where that leads round in a circle, nobody would act. */
function assertSomebodyActs(person: Person, others: readonly Person[], now: string): void {
  if (!person.away) return;
  const { delegate } = person.away;
  if (!others.some(({ id }) => id === delegate)) {
    throw new Problem(422, 'PERSON_INVALID', `there is nobody called ${delegate} who could take ${person.id}'s place`);
  }
  if (standIn(person, [...others, person], now) === undefined) {
    throw new Problem(422, 'PERSON_INVALID', `${delegate} is away too, and their delegates lead back to ${person.id}`);
  }
}
