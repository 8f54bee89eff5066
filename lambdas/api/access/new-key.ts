import type * as z from 'zod';
import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { machineOf, type Person } from '../../people/people.ts';
import { includesRole, isReadOnly, type Role } from '../../people/rights.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import { later } from '../../run/lease.ts';
import type { NamedKey } from '../authorizer/api-keys.ts';
import { type Caller, requireRight } from '../authorizer/caller.ts';
import type { accessRoutes } from '../contract/access.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const EXPIRES_AFTER_DAYS = 90;
const EXPIRES_AFTER_DAYS_MAX = 366;

export interface KeyMaker {
  clock: Clock;
  ids: Ids;
  /** A new random key. */
  newApiKey(): string;
}

type Wanted = z.output<(typeof accessRoutes.createApiKey)['body']>;

/** The key that the caller may create: with at most the caller's rights, for themselves or, with the right, for others. */
export function newKey(caller: Caller, people: readonly Person[], wanted: Wanted, by: ChangeAuthor): NamedKey {
  const { name, machine } = wanted;
  const person = machine ? machineOf(name, caller.person) : (wanted.person ?? caller.person);
  if (machine && wanted.person !== undefined) {
    throw new Problem(400, 'BAD_REQUEST', 'a key belongs to a person or to a machine; leave out person or machine');
  }
  const isOwn = !machine && person === caller.person;
  if (!machine && caller.machine) {
    throw new Problem(403, 'FORBIDDEN', `${caller.person} is a machine; it may create keys for machines only`);
  }
  if (!isOwn) requireRight(caller, 'api-keys:write');
  if (!machine && !people.some(({ id }) => id === person)) {
    const known = people.map(({ id }) => id);
    throw new Problem(422, 'PERSON_INVALID', `there is no person ${person}${didYouMean(person, known)}`);
  }
  const role = roleOf(caller, wanted);
  if (!machine && !isOwn && !isReadOnly(role)) throw mayOnlyRead(person);
  return {
    tenant: caller.tenant,
    person,
    role,
    ...(machine && { machine }),
    name,
    createdBy: by.actor,
    createdAt: by.at,
    expiresAt: expiryOf(wanted, by.at),
    ...issuerOf(caller, person, machine),
  };
}

function roleOf(caller: Caller, { role, machine }: Wanted): Role {
  if (machine && role === undefined) throw new Problem(400, 'BAD_REQUEST', 'role: a key for a machine needs a role');
  const wanted = role ?? caller.role;
  if (includesRole(caller.role, wanted)) return wanted;
  throw new Problem(
    403,
    'FORBIDDEN',
    `a key cannot have more rights than you have now: you are ${caller.role}, the key would be ${wanted}`,
  );
}

/**
 * The person who creates a key for another person knows it. With more than read rights they could start a write as that person and
 * approve it as themselves.
 */
const mayOnlyRead = (person: string): Problem =>
  new Problem(
    403,
    'FORBIDDEN',
    `a key that you create for ${person} is also known to you, so it may only read (role member or auditor); ${person} can sign in and create their own: countersign login, countersign keys create`,
  );

/** The person who creates a key for another one sees it once. If others know the creator's key, they see it too. */
function issuerOf({ person, credential }: Caller, holder: string, machine: boolean): { issuedBy?: string } {
  if (machine) return {};
  const issuedBy = holder === person ? credential?.issuedBy : person;
  return issuedBy === undefined ? {} : { issuedBy };
}

function expiryOf({ expiresAt }: Wanted, now: string): string {
  const inDays = (days: number) => later(now, days * DAY_MS);
  if (expiresAt === undefined) return inDays(EXPIRES_AFTER_DAYS);
  const normalized = new Date(expiresAt).toISOString();
  if (normalized > now && normalized <= inDays(EXPIRES_AFTER_DAYS_MAX)) return normalized;
  throw new Problem(
    400,
    'BAD_REQUEST',
    `expiresAt: ${expiresAt} must be in the future and at most ${EXPIRES_AFTER_DAYS_MAX} days ahead`,
  );
}
