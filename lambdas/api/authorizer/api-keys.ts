import type { Role } from '../../people/rights.ts';
import { effectiveRole } from '../../people/rights.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import type { Caller } from './caller.ts';
import { Unauthenticated } from './unauthenticated.ts';

/** An API key as it is stored. Keys of the first version have only the first four fields. */
export interface ApiKey {
  tenant: string;
  person: string;
  role: Role;
  /** The key belongs to a program; `person` is the name of the program. */
  machine?: boolean;
  name?: string;
  createdBy?: string;
  createdAt?: string;
  expiresAt?: string;
  /** Another person created it for this one, or it was created with such a key. */
  issuedBy?: string;
}
export type NamedKey = ApiKey & { name: string };

export interface StoredKey {
  key: NamedKey;
  hash: string;
  /** The hour of its last use. */
  lastUsedAt?: string;
}

/** API keys are stored as hashes, so that reading the table is not enough to call the API. */
export interface ApiKeys {
  find(apiKey: string): Promise<StoredKey | undefined>;
  /** Creates or replaces a key. For the operator of the stage. */
  save(apiKey: string, key: ApiKey, by: ChangeAuthor): Promise<void>;
  /** False if the tenant has a key with this name. */
  create(apiKey: string, key: NamedKey, by: ChangeAuthor): Promise<boolean>;
  named(tenant: string, name: string): Promise<StoredKey | undefined>;
  /** By name. */
  list(tenant: string): Promise<StoredKey[]>;
  /** Takes effect with the next request. False if it was revoked before. */
  revoke(stored: StoredKey, by: ChangeAuthor): Promise<boolean>;
  recordUse(stored: StoredKey, at: string): Promise<void>;
}

export const apiKeyHash = (apiKey: string) => sha256Hex(apiKey);

/** A key of the first version is listed by the first digits of its hash, which are useless for a login. */
const SHOWN_HASH_DIGITS = 12;
export const nameOfKey = ({ name }: ApiKey, hash: string): string =>
  name ?? `unnamed-${hash.slice(0, SHOWN_HASH_DIGITS)}`;

/** A longer header is no key of ours. */
const KEY_MAX_CHARACTERS = 200;
/** The last use is recorded with this precision, so that most requests write nothing. */
const USE_RECORDED_EACH_MS = 60 * 60 * 1000;
const usePeriod = (now: number): string =>
  new Date(Math.floor(now / USE_RECORDED_EACH_MS) * USE_RECORDED_EACH_MS).toISOString();

export interface KeyHolders {
  keys: Pick<ApiKeys, 'find' | 'recordUse'>;
  definitions: Pick<Definitions, 'person'>;
  clock: { now(): number };
}

/**
 * The caller with this key. The caller has the rights that the key's role and its person's role share. A key whose
 * person was deleted is refused; only a machine's key needs no person.
 */
export async function callerWithKey(holders: KeyHolders, apiKey: string): Promise<Caller> {
  const { keys, definitions, clock } = holders;
  const now = clock.now();
  const stored = apiKey.length > KEY_MAX_CHARACTERS ? undefined : await keys.find(apiKey);
  const { tenant = '', person = '', role, machine, name, expiresAt, issuedBy } = stored?.key ?? {};
  // An unknown key takes as many reads as a known one, so that the time reveals nothing.
  const holder = await definitions.person(tenant, person);
  if (!stored || role === undefined) {
    throw new Unauthenticated('the API key does not exist or was revoked; pass another one, or sign in');
  }
  // Also if it is refused: keys of the first version are listed after a use, and owners must find those of programs.
  if ((stored.lastUsedAt ?? '') < usePeriod(now)) await keys.recordUse(stored, usePeriod(now));
  if (expiresAt !== undefined && Date.parse(expiresAt) <= now) {
    throw new Unauthenticated(`the API key ${name} expired at ${expiresAt}; create a new one: countersign keys create`);
  }
  if (!holder && !machine) throw personIsGone(person);
  const credential = { kind: 'api_key' as const, name, expiresAt, issuedBy };
  return { tenant, person, role: effectiveRole(role, holder), ...(machine && { machine }), credential };
}

const personIsGone = (person: string): Unauthenticated =>
  new Unauthenticated(
    `${person} is not a person of this tenant; ask an owner or admin to add you. A program needs a key of its own: countersign keys create NAME --machine --role ROLE`,
  );
