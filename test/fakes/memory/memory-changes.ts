import { hasIdentity, type Person } from '../../../lambdas/people/people.ts';
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
  type RecordedChanges,
  recorded,
  type SavedPerson,
  type SaveOptions,
  subjectOf,
} from '../../../lambdas/pipeline/definition-changes.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { CountersignError } from '../../../lambdas/run/errors.ts';
import type { Page } from '../../../lambdas/run/run-store.ts';
import { MemoryRows } from './memory-rows.ts';

/** The actor that sets up a tenant for a test. */
export const BY_SETUP: ChangeAuthor = {
  actor: 'setup',
  at: '2026-01-01T00:00:00.000Z',
  changeId: 'chg_0',
  salt: 'salt_0',
};

interface Saved {
  tenant: string;
  kind: ChangeKind;
  name: string;
  by: ChangeAuthor;
}

export class MemoryChanges implements RecordedChanges {
  protected readonly peopleRows = new MemoryRows<Person>();
  readonly #former = new MemoryRows<string>();
  readonly #pending = new MemoryRows<PendingChange>();
  readonly #changes = new MemoryRows<Change>();

  protected save<T extends object>(
    rows: MemoryRows<T>,
    [partition, sort]: readonly [string, string],
    document: T,
    { tenant, kind, name, by }: Saved,
    { replaces, confirms, secretsSet = [] }: ConfirmedSave<object> = {},
  ): void {
    const before = rows.get(partition, sort);
    if (replaces !== undefined && hashOf(before ?? null) !== hashOf(replaces)) {
      throw new CountersignError('CONFLICT', `${name} was changed meanwhile`);
    }
    const noSecretSet = secretsSet.length === 0;
    if (before && !confirms && noSecretSet && hashOf(before) === hashOf(JSON.parse(JSON.stringify(document)))) return;
    if (confirms) this.#settle(tenant, confirms);
    rows.set(partition, sort, document);
    this.record(tenant, {
      ...by,
      kind,
      name,
      action: confirms ? 'confirmed' : before ? 'changed' : 'created',
      before: recorded(before),
      after: recorded(document),
      ...(!noSecretSet && { secretsSet }),
      ...(confirms && { requestedBy: confirms.requestedBy }),
    });
  }

  protected delete<T extends object>(
    rows: MemoryRows<T>,
    [partition, sort]: readonly [string, string],
    { tenant, kind, name, by }: Saved,
    { replaces }: Pick<SaveOptions, 'replaces'> = {},
  ): boolean {
    const before = rows.get(partition, sort);
    if (replaces !== undefined && hashOf(before ?? null) !== hashOf(replaces)) {
      throw new CountersignError('CONFLICT', `${name} was changed meanwhile`);
    }
    if (!before) return false;
    rows.set(partition, sort, undefined);
    this.record(tenant, { ...by, kind, name, action: 'deleted', before: recorded(before), after: null });
    return true;
  }

  protected record(tenant: string, change: Change): void {
    this.#changes.set(tenant, changeSortKey(change), change);
  }

  async person(tenant: string, id: string): Promise<Person | undefined> {
    return this.peopleRows.get(tenant, id);
  }

  async people(tenant: string): Promise<Person[]> {
    return this.peopleRows.inPartition(tenant);
  }

  async personWithIdentity(tenant: string, identities: readonly [string, ...string[]]): Promise<Person | undefined> {
    const people = await this.people(tenant);
    const [found] = identities.flatMap((identity) => people.find((each) => hasIdentity(each, identity)) ?? []);
    return found;
  }

  async savePerson(tenant: string, person: Person, by = BY_SETUP, how: SavedPerson = {}): Promise<void> {
    const others = this.peopleRows.inPartition(tenant).filter(({ id }) => id !== person.id);
    const taken = person.identities.find((identity) => others.some((other) => hasIdentity(other, identity)));
    if (taken !== undefined) throw new CountersignError('CONFLICT', `the identity ${taken} belongs to another person`);
    this.#assertUnchanged(tenant, how.remainingOwner);
    this.save(this.peopleRows, [tenant, person.id], person, { tenant, kind: 'person', name: person.id, by }, how);
  }

  async deletePerson(tenant: string, person: Person, by: ChangeAuthor, how: ChangedOwner = {}): Promise<void> {
    const { id } = person;
    this.#assertUnchanged(tenant, how.remainingOwner);
    this.delete(this.peopleRows, [tenant, id], { tenant, kind: 'person', name: id, by }, { replaces: person });
    this.#former.set(tenant, id, id);
  }

  async wasDeleted(tenant: string, id: string): Promise<boolean> {
    return this.#former.get(tenant, id) !== undefined;
  }

  async requestChange(tenant: string, pending: PendingChange, by: ChangeAuthor, before: object | null): Promise<void> {
    const { changeId, after } = pending;
    this.#pending.set(tenant, changeId, pending);
    const documents = { before: recorded(before ?? undefined), after: recorded(after) };
    this.record(tenant, { ...by, ...subjectOf(tenant, pending), action: 'requested', ...documents });
  }

  async pendingChange(tenant: string, changeId: string): Promise<PendingChange | undefined> {
    return this.#pending.get(tenant, changeId);
  }

  async pendingChanges(
    tenant: string,
    { after = '', limit }: { after?: string; limit: number },
  ): Promise<PendingChange[]> {
    const all = this.#pending.inPartition(tenant);
    return all.filter(({ changeId }) => changeId > after).slice(0, limit);
  }

  async dismissChange(tenant: string, pending: PendingChange, by: ChangeAuthor, dismissal: Dismissal): Promise<void> {
    this.#settle(tenant, pending);
    const { after, requestedBy } = pending;
    const before = pending.kind === 'person' ? pending.before : null;
    const documents = { before: recorded(before ?? undefined), after: recorded(after) };
    this.record(tenant, { ...by, ...subjectOf(tenant, pending), ...dismissal, ...documents, requestedBy });
  }

  async recordCredential(tenant: string, change: CredentialChange, by: ChangeAuthor): Promise<void> {
    this.record(tenant, credentialEntry(change, by));
  }

  async eraseChange(tenant: string, change: Change, by: ChangeAuthor, reason: string): Promise<void> {
    this.record(tenant, erasedChange(change));
    this.record(tenant, erasureEntry(change, by, reason));
  }

  async changes(
    tenant: string,
    { after, limit }: { after?: string; limit: number },
    filter: ChangeFilter = {},
  ): Promise<Page<Change>> {
    const newestFirst = this.#changes.inPartition(tenant).reverse();
    const rest = newestFirst.filter(
      (change) => (after === undefined || changeSortKey(change) < after) && matchesFilter(change, filter),
    );
    const items = rest.slice(0, limit);
    const last = items.at(-1);
    return { items, ...(last && rest.length > limit && { next: changeSortKey(last) }) };
  }

  #assertUnchanged(tenant: string, owner: Person | undefined): void {
    if (!owner || hashOf(this.peopleRows.get(tenant, owner.id) ?? null) === hashOf(owner)) return;
    throw new CountersignError('CONFLICT', `${owner.id} was changed meanwhile`);
  }

  #settle(tenant: string, pending: PendingChange): void {
    const { changeId } = pending;
    if (!this.#pending.get(tenant, changeId)) throw new CountersignError('CONFLICT', `${changeId} is settled already`);
    this.#pending.set(tenant, changeId, undefined);
  }
}
