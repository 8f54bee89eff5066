import type { Person } from '../people/people.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import type { Page } from '../run/run-store.ts';

/** Who changes what a tenant has defined, when, and the id of the record of it. */
export interface ChangeAuthor {
  actor: string;
  at: string;
  changeId: string;
}

export type ChangeKind = 'person' | 'automation' | 'connection' | 'policies' | 'settings' | 'workflow' | 'api_key';

/** `requested` and `confirmed`: a change that waited for a second owner; `confirmed` of a person also vouches for them. */
export type ChangeAction = 'created' | 'changed' | 'deleted' | 'requested' | 'confirmed' | 'rejected' | 'expired';

/** One entry of the history of a tenant's definitions: written with the change itself, and never again. */
export interface Change extends ChangeAuthor {
  kind: ChangeKind;
  name: string;
  action: ChangeAction;
  /** Null where there was nothing, or nothing is left. */
  before: unknown;
  after: unknown;
  /** Who had asked for what was confirmed, rejected or expired. */
  requestedBy?: string;
  reason?: string;
}

/** Two of these and the rest of the entry fit into one row, compressed or not. */
const RECORDED_MAX_BYTES = 128 * 1024;
/** A URL may carry a name and a password before its host. */
const CREDENTIALS_IN_URL = /\/\/[^/@\s"]+@/g;

/** A document as the history shows it: without credentials, and by its hash if it is too large. */
export function recorded(document: object | undefined): unknown {
  if (document === undefined) return null;
  const text = JSON.stringify(document).replaceAll(CREDENTIALS_IN_URL, '//***@');
  const bytes = Buffer.byteLength(text);
  return bytes <= RECORDED_MAX_BYTES ? JSON.parse(text) : { sha256: sha256Hex(text), bytes };
}

/** A change of a person that waits until a second owner confirms it. */
export interface PendingChange {
  changeId: string;
  person: string;
  before: Person | null;
  after: Person;
  /** What it would widen, in words. */
  widens: string[];
  requestedBy: string;
  requestedAt: string;
  expiresAt: string;
}

/** What became of a pending change that is not made. */
export interface Dismissal {
  action: 'rejected' | 'expired';
  reason?: string;
}

export interface SavedPerson {
  /** What the change was judged against, null for nobody: if it is something else by now, nothing is saved. */
  replaces?: Person | null;
  /** The pending change that is made by this, in the same transaction, once. */
  confirms?: PendingChange;
}

/** The people of a tenant as they change, and the history of everything that does. */
export interface RecordedChanges {
  person(tenant: string, id: string): Promise<Person | undefined>;
  savePerson(tenant: string, person: Person, by: ChangeAuthor, how?: SavedPerson): Promise<void>;
  /** As they were read: whoever was changed since is not deleted. The id is never given again: a key of the former person would work for the new one. */
  deletePerson(tenant: string, person: Person, by: ChangeAuthor): Promise<void>;
  wasDeleted(tenant: string, id: string): Promise<boolean>;

  requestChange(tenant: string, pending: PendingChange): Promise<void>;
  pendingChange(tenant: string, changeId: string): Promise<PendingChange | undefined>;
  pendingChanges(tenant: string, page: { after?: string; limit: number }): Promise<PendingChange[]>;
  dismissChange(tenant: string, pending: PendingChange, by: ChangeAuthor, dismissal: Dismissal): Promise<void>;

  /** Newest first. */
  changes(tenant: string, page: { after?: string; limit: number }): Promise<Page<Change>>;
}

/** Sorts the history by time; also the place of an entry in it. */
export const placeOfChange = ({ at, changeId }: ChangeAuthor): string => `${at}#${changeId}`;
