import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Person } from '../people/people.ts';
import { hashOf } from '../run/canonical-json.ts';
import { ROW_EXISTS, ROW_IS_NEW, rowIsStill } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, keyOf, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { type DynamoRows, under } from '../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../run/dynamo/dynamo-transactions.ts';
import { CountersignError } from '../run/errors.ts';
import type { Page } from '../run/run-store.ts';
import {
  type Change,
  type ChangeAuthor,
  type ChangedOwner,
  type ChangeFilter,
  type ChangeKind,
  type ConfirmedSave,
  type CredentialChange,
  changeSortKey,
  credentialEntry,
  type Dismissal,
  erasedChange,
  erasureEntry,
  matchesFilter,
  type PendingChange,
  pendingFrom,
  type RecordedChanges,
  recorded,
  type SavedPerson,
  type SaveOptions,
  subjectOf,
} from './definition-changes.ts';
import { DynamoIdentities } from './dynamo-identities.ts';

/** An expired pending change is deleted after this time. */
const PENDING_RETAINED_SECONDS = 30 * 24 * 60 * 60;

/** One call reads at most this much of the history, a megabyte each. */
const FILTERED_PAGES_MAX = 4;

/** The row of a definition, and who changes it. */
export interface Saved {
  tenant: string;
  kind: ChangeKind;
  name: string;
  key: keys.Key;
  by: ChangeAuthor;
  /** Further writes of the same transaction, for rows that must agree with the definition. */
  besides?: TransactWriteItem[];
  /** Further attributes of the row, for example its expiry. */
  attributes?: Record<string, unknown>;
}

/** Writes each definition together with its entry in the history. */
export class DynamoChanges implements RecordedChanges {
  readonly #rows: DynamoRows;
  readonly #pause: Pause;
  readonly #identities: DynamoIdentities;

  constructor(rows: DynamoRows, pause: Pause) {
    this.#rows = rows;
    this.#pause = pause;
    this.#identities = new DynamoIdentities(rows, pause);
  }

  /** Writes the document and its entry, unless the document is unchanged and no secret was set. */
  async save(saved: Saved, document: object, how: ConfirmedSave<object> = {}): Promise<void> {
    const { tenant, kind, name, key, by, besides = [], attributes } = saved;
    const { replaces, confirms, secretsSet = [] } = how;
    const read = await this.#rows.getItem(key);
    const before = read && docOf<object>(read);
    if (replaces !== undefined && hashOf(before ?? null) !== hashOf(replaces)) throw conflict(`${kind} ${name}`);
    if (before && !confirms && secretsSet.length === 0 && isSame(before, document)) return;
    const { changeId, requestedBy } = confirms ?? {};
    await this.#write(`${kind} ${name}`, [
      this.#rows.put(toItem(key, document, attributes), rowIsStill(read)),
      this.#entry(tenant, {
        ...by,
        kind,
        name,
        action: confirms ? 'confirmed' : before ? 'changed' : 'created',
        before: recorded(before),
        after: recorded(document),
        ...(secretsSet.length > 0 && { secretsSet }),
        ...(requestedBy !== undefined && { requestedBy }),
      }),
      ...(changeId === undefined ? [] : [this.#rows.remove(keys.pendingChangeKey(tenant, changeId), ROW_EXISTS)]),
      ...besides,
    ]);
  }

  /** Writes a new document. Returns false and writes nothing if the key exists. */
  async saveNew({ tenant, kind, name, key, by, besides = [], attributes }: Saved, document: object): Promise<boolean> {
    const entry = { ...by, kind, name, action: 'created' as const, before: null, after: recorded(document) };
    const refused = await this.#rows.transact(
      [this.#rows.put(toItem(key, document, attributes), ROW_IS_NEW), this.#entry(tenant, entry), ...besides],
      this.#pause,
    );
    return refused === undefined;
  }

  /**
   * Deletes a definition. Returns false and writes nothing if there is none. With `replaces`, only the document that
   * was read before is deleted.
   */
  async delete(saved: Saved, { replaces }: Pick<SaveOptions, 'replaces'> = {}): Promise<boolean> {
    const { tenant, kind, name, key, by, besides = [] } = saved;
    const read = await this.#rows.getItem(key);
    const before = read && docOf<object>(read);
    if (replaces !== undefined && hashOf(before ?? null) !== hashOf(replaces)) throw conflict(`${kind} ${name}`);
    if (!read) return false;
    await this.#write(`${kind} ${name}`, [
      this.#rows.remove(key, rowIsStill(read)),
      this.#entry(tenant, { ...by, kind, name, action: 'deleted', before: recorded(before), after: null }),
      ...besides,
    ]);
    return true;
  }

  person(tenant: string, id: string): Promise<Person | undefined> {
    return this.#rows.get(keys.personKey(tenant, id));
  }

  async people(tenant: string): Promise<Person[]> {
    const items = await this.#rows.range(under(keys.tenantPartition(tenant), keys.PERSON_PREFIX));
    return items.map((item) => docOf<Person>(item));
  }

  personWithIdentity(tenant: string, identities: readonly [string, ...string[]]): Promise<Person | undefined> {
    return this.#identities.personWith(tenant, identities, () => this.people(tenant));
  }

  async savePerson(tenant: string, person: Person, by: ChangeAuthor, how: SavedPerson = {}): Promise<void> {
    const key = keys.personKey(tenant, person.id);
    const before = await this.#rows.get<Person>(key);
    const besides = await this.#besides(tenant, { before, after: person, by, ...how });
    const saved = { tenant, kind: 'person' as const, name: person.id, key, by, besides };
    await this.save(saved, person, { ...how, replaces: how.replaces === undefined ? (before ?? null) : how.replaces });
  }

  async deletePerson(tenant: string, person: Person, by: ChangeAuthor, how: ChangedOwner = {}): Promise<void> {
    const { id } = person;
    const former = toItem(keys.formerPersonKey(tenant, id), { id, deletedAt: by.at, deletedBy: by.actor });
    const others = await this.#besides(tenant, { before: person, after: undefined, by, ...how });
    const besides = [this.#rows.put(former), ...others];
    const key = keys.personKey(tenant, id);
    await this.delete({ tenant, kind: 'person', name: id, key, by, besides }, { replaces: person });
  }

  /** What must hold in the same transaction: nobody else has an identity of the person, and an owner remains. */
  async #besides(
    tenant: string,
    change: { before?: Person; after?: Person; by: ChangeAuthor } & ChangedOwner,
  ): Promise<TransactWriteItem[]> {
    const { before, after, by, remainingOwner } = change;
    const writes = await this.#identities.writesFor({ tenant, before, after, changeId: by.changeId });
    if (!remainingOwner) return writes;
    const key = keys.personKey(tenant, remainingOwner.id);
    const read = await this.#rows.getItem(key);
    if (!read || hashOf(docOf(read)) !== hashOf(remainingOwner)) throw conflict(`person ${remainingOwner.id}`);
    return [...writes, this.#rows.check(key, rowIsStill(read))];
  }

  async wasDeleted(tenant: string, id: string): Promise<boolean> {
    return (await this.#rows.getItem(keys.formerPersonKey(tenant, id))) !== undefined;
  }

  async requestChange(tenant: string, pending: PendingChange, by: ChangeAuthor, before: object | null): Promise<void> {
    const { changeId, after, expiresAt } = pending;
    const deleteAfter = Math.ceil(Date.parse(expiresAt) / 1000) + PENDING_RETAINED_SECONDS;
    const row = toItem(keys.pendingChangeKey(tenant, changeId), pending, { [keys.TTL_ATTRIBUTE]: deleteAfter });
    const documents = { before: recorded(before ?? undefined), after: recorded(after) };
    await this.#write(`the request ${changeId}`, [
      this.#rows.put(row, ROW_IS_NEW),
      this.#entry(tenant, { ...by, ...subjectOf(tenant, pending), action: 'requested', ...documents }),
    ]);
  }

  async pendingChange(tenant: string, changeId: string): Promise<PendingChange | undefined> {
    const stored = await this.#rows.get<PendingChange>(keys.pendingChangeKey(tenant, changeId));
    return stored && pendingFrom(stored);
  }

  async pendingChanges(tenant: string, { after, limit }: { after?: string; limit: number }): Promise<PendingChange[]> {
    const all = under(keys.tenantPartition(tenant), keys.PENDING_CHANGE_PREFIX);
    const from = after === undefined ? all.from : keys.pendingChangeKey(tenant, after).sk;
    const found = await this.#rows.range({ ...all, from }, { limit: limit + 1 });
    return found
      .map((item) => pendingFrom(docOf<PendingChange>(item)))
      .filter(({ changeId }) => changeId !== after)
      .slice(0, limit);
  }

  async dismissChange(tenant: string, pending: PendingChange, by: ChangeAuthor, dismissal: Dismissal): Promise<void> {
    const { changeId, after, requestedBy } = pending;
    const before = pending.kind === 'person' ? pending.before : null;
    const documents = { before: recorded(before ?? undefined), after: recorded(after) };
    await this.#write(`the request ${changeId}`, [
      this.#rows.remove(keys.pendingChangeKey(tenant, changeId), ROW_EXISTS),
      this.#entry(tenant, { ...by, ...subjectOf(tenant, pending), ...dismissal, ...documents, requestedBy }),
    ]);
  }

  async recordCredential(tenant: string, change: CredentialChange, by: ChangeAuthor): Promise<void> {
    await this.#write(`the credential ${change.name}`, [this.#entry(tenant, credentialEntry(change, by))]);
  }

  async eraseChange(tenant: string, change: Change, by: ChangeAuthor, reason: string): Promise<void> {
    await this.#write(`the change ${change.changeId}`, [
      this.#rows.put(toItem(keys.changeKey(tenant, changeSortKey(change)), erasedChange(change)), ROW_EXISTS),
      this.#entry(tenant, erasureEntry(change, by, reason)),
    ]);
  }

  async changes(
    tenant: string,
    { after, limit }: { after?: string; limit: number },
    filter: ChangeFilter = {},
  ): Promise<Page<Change>> {
    const { since = keys.FIRST, until } = filter;
    const newest = until === undefined ? keys.LAST : `${until}#${keys.LAST}`;
    const to = after !== undefined && after < newest ? after : newest;
    const range = { pk: keys.changePartition(tenant), from: since, to };
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    const found: Change[] = [];
    let pages = 0;
    let last: string | undefined;
    for await (const items of this.#rows.pages(range, {
      newestFirst: true,
      ...(!isFiltered && { limit: limit + 2 }),
    })) {
      for (const item of items) {
        last = keyOf(item).sk;
        const change = last === after ? undefined : docOf<Change>(item);
        if (!change || !matchesFilter(change, filter)) continue;
        if (found.length === limit) return { items: found, next: changeSortKey(found.at(-1) as Change) };
        found.push(change);
      }
      pages += 1;
      if (pages === FILTERED_PAGES_MAX && last !== undefined) return { items: found, next: last };
    }
    return { items: found };
  }

  #entry(tenant: string, change: Change): TransactWriteItem {
    return this.#rows.put(toItem(keys.changeKey(tenant, changeSortKey(change)), change), ROW_IS_NEW);
  }

  async #write(what: string, writes: TransactWriteItem[]): Promise<void> {
    if ((await this.#rows.transact(writes, this.#pause)) === undefined) return;
    throw conflict(what);
  }
}

const conflict = (what: string): CountersignError =>
  new CountersignError(
    'CONFLICT',
    `another request changed ${what} at the same time; read it again, then repeat your change`,
  );

const isSame = (a: object, b: object): boolean => hashOf(a) === hashOf(b);
