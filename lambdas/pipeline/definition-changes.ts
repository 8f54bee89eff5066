import { type Clock, type Ids, isoNow } from '../entry/ports.ts';
import type { Person } from '../people/people.ts';
import type { TenantPolicies } from '../policy/policy.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import type { Page } from '../run/run-store.ts';

/** Who changes a definition, when, and the id of the entry in the history. */
export interface ChangeAuthor {
  actor: string;
  at: string;
  changeId: string;
  /** Random. Without it nobody can guess the values behind the digest of a change in the signed files. */
  salt: string;
}

export function changeAuthor({ clock, ids }: { clock: Clock; ids: Ids }, actor: string): ChangeAuthor {
  const at = isoNow(clock);
  return { actor, at, changeId: ids.next(changeIdPrefix(at)), salt: ids.next('salt') };
}

/** Every kind of definition. CONTRIBUTING, "Add a kind of definition", says how to add one. */
export const CHANGE_KINDS = [
  'person',
  'automation',
  'configuration',
  'connection',
  'credential',
  'policies',
  'settings',
  'workflow',
  'schedule',
  'webhook_source',
  'api_key',
  'profile',
  'agent',
  'enrolment_token',
  'history',
] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A change that needs a second owner is `requested` and then `confirmed`, `rejected` or `expired`. Only the history itself is `erased`. */
export const CHANGE_ACTIONS = [
  'created',
  'changed',
  'deleted',
  'requested',
  'confirmed',
  'rejected',
  'expired',
  'erased',
] as const;
export type ChangeAction = (typeof CHANGE_ACTIONS)[number];

/** One entry in the history of a tenant's definitions. The transaction of the change writes it; it never changes. */
export interface Change extends Omit<ChangeAuthor, 'salt'> {
  /** Changes of earlier releases have none. */
  salt?: string;
  kind: ChangeKind;
  name: string;
  action: ChangeAction;
  /** Null if the definition did not exist before, or does not exist after. */
  before: unknown;
  after: unknown;
  /** The names of the secrets that were set with this change. Their values are never recorded. */
  secretsSet?: string[];
  /** The author of the request that was confirmed, rejected or expired. */
  requestedBy?: string;
  reason?: string;
}

/** Two documents of this size fit into one row, even if they do not compress. */
const RECORDED_MAX_BYTES = 128 * 1024;
/** A URL can contain a user name and a password before the host. */
const CREDENTIALS_IN_URL = /\/\/[^/@\s"]+@/g;
/** Secrets belong in Secrets Manager, not in definitions. If one is in a field with such a name, the history hides it. */
const SECRET_FIELD = /(?:secret|password|passphrase|token|credential|private_?key|api_?key)s?$/i;
const HIDDEN = '***';

/** A document as the history stores it: without credentials, and only its hash if it is too large. */
export function recorded(document: object | undefined): unknown {
  if (document === undefined) return null;
  const text = JSON.stringify(document, hideSecret).replaceAll(CREDENTIALS_IN_URL, `//${HIDDEN}@`);
  const bytes = Buffer.byteLength(text);
  return bytes <= RECORDED_MAX_BYTES ? JSON.parse(text) : { sha256: sha256Hex(text), bytes };
}

const hideSecret = (field: string, value: unknown): unknown =>
  typeof value === 'string' && SECRET_FIELD.test(field) ? HIDDEN : value;

/** A change that a second owner has to confirm. */
export type PendingChange = PendingPerson | PendingPolicies;

interface RequestedChange {
  changeId: string;
  /** Why it needs a second owner, as sentences. */
  widens: string[];
  requestedBy: string;
  requestedAt: string;
  expiresAt: string;
}

export interface PendingPerson extends RequestedChange {
  kind: 'person';
  person: string;
  before: Person | null;
  after: Person;
}

export interface PendingPolicies extends RequestedChange {
  kind: 'policies';
  /** The hash of the policies that it was compared with: one row cannot store two sets of the largest size. */
  replaces: string;
  after: TenantPolicies;
}

/** Requests of earlier versions are about people and have no kind. */
export const pendingFrom = (stored: PendingChange): PendingChange =>
  'kind' in stored ? stored : { ...(stored as PendingPerson), kind: 'person' };

/** The definition of a pending change, as the history names it. */
export const subjectOf = (tenant: string, pending: PendingChange): Pick<Change, 'kind' | 'name'> =>
  pending.kind === 'person' ? { kind: 'person', name: pending.person } : { kind: 'policies', name: tenant };

/** Why a pending change was not made. */
export interface Dismissal {
  action: 'rejected' | 'expired';
  reason?: string;
}

/** A change of one entry of a secret. */
export interface CredentialChange {
  /** The secret and its entry: `connections/github`. */
  name: string;
  action: 'created' | 'changed' | 'deleted';
  /** The versions of the secret in Secrets Manager. */
  before: string;
  after: string;
}

/** How a definition is saved. */
export interface SaveOptions<Document extends object = object> {
  /** The document that the change was checked against, null for none. If the stored one differs, nothing is saved. */
  replaces?: Document | null;
  /** The names of secrets that were set before this. The change is recorded even if the document is the same. */
  secretsSet?: string[];
}

/** How a person is saved or deleted. */
export interface ChangedOwner {
  /** An owner who must be unchanged, because the change takes the role of another one: a tenant has at least one. */
  remainingOwner?: Person;
}

/** How a definition is saved whose changes may need a second owner. */
export interface ConfirmedSave<Document extends object> extends SaveOptions<Document> {
  /** The pending change that this confirms, in the same transaction. */
  confirms?: PendingChange;
}

export interface SavedPerson extends ConfirmedSave<Person>, ChangedOwner {}

/** The people of a tenant, and the history of all changes to its definitions. */
export interface RecordedChanges {
  person(tenant: string, id: string): Promise<Person | undefined>;
  /** The person with the first of these identities that somebody has. */
  personWithIdentity(tenant: string, identities: readonly [string, ...string[]]): Promise<Person | undefined>;
  /** `CONFLICT` if another person has one of the identities. */
  savePerson(tenant: string, person: Person, by: ChangeAuthor, how?: SavedPerson): Promise<void>;
  /** Deletes the person only if nobody has changed them since. The id is never used again: an old key would work for the new person. */
  deletePerson(tenant: string, person: Person, by: ChangeAuthor, how?: ChangedOwner): Promise<void>;
  wasDeleted(tenant: string, id: string): Promise<boolean>;

  /** `before` is the definition that the history shows beside the requested one. */
  requestChange(tenant: string, pending: PendingChange, by: ChangeAuthor, before: object | null): Promise<void>;
  pendingChange(tenant: string, changeId: string): Promise<PendingChange | undefined>;
  pendingChanges(tenant: string, page: { after?: string; limit: number }): Promise<PendingChange[]>;
  dismissChange(tenant: string, pending: PendingChange, by: ChangeAuthor, dismissal: Dismissal): Promise<void>;

  /**
   * Records that a credential is about to change. Secrets Manager has no transaction with the table, so the entry comes
   * first: it names the version of the secret that the change makes current, and none of its values.
   */
  recordCredential(tenant: string, change: CredentialChange, by: ChangeAuthor): Promise<void>;

  /** Deletes who made the change, its name and its values, and records that. */
  eraseChange(tenant: string, change: Change, by: ChangeAuthor, reason: string): Promise<void>;

  /**
   * Newest first. A page of a filtered list may have fewer changes than the limit, even none, and still a next page: one
   * call reads a bounded part of the history.
   */
  changes(tenant: string, page: { after?: string; limit: number }, filter?: ChangeFilter): Promise<Page<Change>>;
}

/** A change must match every field. Times are as in `at`. */
export interface ChangeFilter {
  kind?: ChangeKind;
  name?: string;
  actor?: string;
  changeId?: string;
  since?: string;
  until?: string;
}

export const matchesFilter = (change: Change, { kind, name, actor, changeId, since, until }: ChangeFilter): boolean =>
  (kind === undefined || change.kind === kind) &&
  (name === undefined || change.name === name) &&
  (actor === undefined || change.actor === actor) &&
  (changeId === undefined || change.changeId === changeId) &&
  (since === undefined || change.at >= since) &&
  (until === undefined || change.at <= until);

/** `chg_20261117T103000123Z`: the id of a change begins with its time, so that one change is found without a search. */
const changeIdPrefix = (at: string): string => `chg_${at.replaceAll(/[-:.]/g, '')}`;

/** The time in the id of a change. Changes of the first version have none. */
export function timeOfChangeId(changeId: string): string | undefined {
  const [, ...parts] = /^chg_(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z_/.exec(changeId) ?? [];
  const [year, month, day, hour, minute, second, ms] = parts;
  return year === undefined ? undefined : `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`;
}

const ERASED = '(erased)';

/** What stays of a change: what the signed file of its day has too. Without its salt, the digest there reveals nothing. */
export const erasedChange = ({ changeId, at, kind, action }: Change): Change => ({
  changeId,
  at,
  kind,
  action,
  actor: ERASED,
  name: ERASED,
  before: null,
  after: null,
});

export const erasureEntry = ({ changeId }: Change, by: ChangeAuthor, reason: string): Change => ({
  ...by,
  kind: 'history',
  name: changeId,
  action: 'erased',
  before: null,
  after: null,
  reason,
});

export const credentialEntry = ({ name, action, before, after }: CredentialChange, by: ChangeAuthor): Change => ({
  ...by,
  kind: 'credential',
  name,
  action,
  before: action === 'created' ? null : { version: before },
  after: { version: after },
});

/** The sort key of an entry, in order of time. */
export const changeSortKey = ({ at, changeId }: Pick<Change, 'at' | 'changeId'>): string => `${at}#${changeId}`;
