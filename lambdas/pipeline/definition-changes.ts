import type { Person } from '../people/people.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import type { Page } from '../run/run-store.ts';

/** Who changes a definition, when, and the id of the entry in the history. */
export interface ChangeAuthor {
  actor: string;
  at: string;
  changeId: string;
}

export type ChangeKind = 'person' | 'automation' | 'connection' | 'policies' | 'settings' | 'workflow' | 'api_key';

/** A change that needs a second owner is `requested` and then `confirmed`, `rejected` or `expired`. */
export type ChangeAction = 'created' | 'changed' | 'deleted' | 'requested' | 'confirmed' | 'rejected' | 'expired';

/** One entry in the history of a tenant's definitions. The transaction of the change writes it; it never changes. */
export interface Change extends ChangeAuthor {
  kind: ChangeKind;
  name: string;
  action: ChangeAction;
  /** Null if the definition did not exist before, or does not exist after. */
  before: unknown;
  after: unknown;
  /** The author of the request that was confirmed, rejected or expired. */
  requestedBy?: string;
  reason?: string;
}

/** Two documents of this size fit into one row, even if they do not compress. */
const RECORDED_MAX_BYTES = 128 * 1024;
/** A URL can contain a user name and a password before the host. */
const CREDENTIALS_IN_URL = /\/\/[^/@\s"]+@/g;

/** A document as the history stores it: without credentials, and only its hash if it is too large. */
export function recorded(document: object | undefined): unknown {
  if (document === undefined) return null;
  const text = JSON.stringify(document).replaceAll(CREDENTIALS_IN_URL, '//***@');
  const bytes = Buffer.byteLength(text);
  return bytes <= RECORDED_MAX_BYTES ? JSON.parse(text) : { sha256: sha256Hex(text), bytes };
}

/** A change of a person that a second owner has to confirm. */
export interface PendingChange {
  changeId: string;
  person: string;
  before: Person | null;
  after: Person;
  /** The additional rights, as sentences. */
  widens: string[];
  requestedBy: string;
  requestedAt: string;
  expiresAt: string;
}

/** Why a pending change was not made. */
export interface Dismissal {
  action: 'rejected' | 'expired';
  reason?: string;
}

export interface SavedPerson {
  /** The person that the change was checked against, null for none. If the stored person differs, nothing is saved. */
  replaces?: Person | null;
  /** The pending change that this confirms, in the same transaction. */
  confirms?: PendingChange;
}

/** The people of a tenant, and the history of all changes to its definitions. */
export interface RecordedChanges {
  person(tenant: string, id: string): Promise<Person | undefined>;
  savePerson(tenant: string, person: Person, by: ChangeAuthor, how?: SavedPerson): Promise<void>;
  /** Deletes the person only if nobody has changed them since. The id is never used again: an old key would work for the new person. */
  deletePerson(tenant: string, person: Person, by: ChangeAuthor): Promise<void>;
  wasDeleted(tenant: string, id: string): Promise<boolean>;

  requestChange(tenant: string, pending: PendingChange): Promise<void>;
  pendingChange(tenant: string, changeId: string): Promise<PendingChange | undefined>;
  pendingChanges(tenant: string, page: { after?: string; limit: number }): Promise<PendingChange[]>;
  dismissChange(tenant: string, pending: PendingChange, by: ChangeAuthor, dismissal: Dismissal): Promise<void>;

  /** Newest first. */
  changes(tenant: string, page: { after?: string; limit: number }): Promise<Page<Change>>;
}

/** The sort key of an entry, in order of time. */
export const changeSortKey = ({ at, changeId }: ChangeAuthor): string => `${at}#${changeId}`;
