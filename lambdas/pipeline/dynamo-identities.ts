import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { hasIdentity, identityForm, type Person } from '../people/people.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { rowIsStill } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, type Item, keyOf, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import type { DynamoRows } from '../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../run/dynamo/dynamo-transactions.ts';
import { CountersignError } from '../run/errors.ts';

/** A transaction has at most 100 writes; the person and the history need a few. */
const WRITES_MAX = 90;

/** Whose identity it is. The name of the change makes two writes for the same person differ, for conditions. */
interface IdentityOwner {
  person: string;
  changeId?: string;
}

interface ChangedPerson {
  tenant: string;
  before: Person | undefined;
  after: Person | undefined;
  changeId: string;
}

/**
 * One row for each identity names its person, so that a request of a signed-in person reads two rows and not all people.
 * The row of the person decides: people of earlier releases have no such rows, and a row can be outdated. A reader that
 * finds no row, or an outdated one, reads all people once and corrects it.
 */
export class DynamoIdentities {
  readonly #rows: DynamoRows;
  readonly #pause: Pause;

  constructor(rows: DynamoRows, pause: Pause) {
    this.#rows = rows;
    this.#pause = pause;
  }

  /**
   * The person with the first of these identities that somebody has. The row of the first identity may also name a
   * person who has another of them: people often sign in by their email address alone.
   */
  async personWith(
    tenant: string,
    identities: readonly [string, ...string[]],
    everybody: () => Promise<Person[]>,
  ): Promise<Person | undefined> {
    const key = rowKey(tenant, identities[0]);
    const read = await this.#rows.getItem(key);
    const named = read && (await this.#person(tenant, docOf<IdentityOwner>(read).person));
    if (named && identities.some((identity) => hasIdentity(named, identity))) return named;
    const people = await everybody();
    const [found] = identities.flatMap((identity) => people.find((each) => hasIdentity(each, identity)) ?? []);
    // If another request has changed the row meanwhile, its content is newer.
    if (found) await this.#rows.save(toItem(key, { person: found.id } satisfies IdentityOwner), rowIsStill(read));
    return found;
  }

  /** The writes that make these rows agree with a changed person. Throws `CONFLICT` if another person has an identity. */
  async writesFor({ tenant, before, after, changeId }: ChangedPerson): Promise<TransactWriteItem[]> {
    const [former, wanted] = [formsOf(before), formsOf(after)];
    const all = [...new Set([...wanted, ...former])];
    const read = await this.#read(tenant, all);
    const put = (form: string, person: string) =>
      this.#rows.put(toItem(rowKey(tenant, form), { person, changeId }), rowIsStill(read.get(form)));
    const added: TransactWriteItem[] = [];
    const corrected: TransactWriteItem[] = [];
    for (const form of after ? wanted : []) {
      const { id } = after as Person;
      const owner = read.get(form) && docOf<IdentityOwner>(read.get(form) as Item).person;
      if (owner !== undefined && owner !== id) await this.#assertOutdated(tenant, form, owner, id);
      // An added identity is written even if the row names the person: a concurrent write for another one must fail.
      if (!former.includes(form)) added.push(put(form, id));
      else if (owner !== id) corrected.push(put(form, id));
    }
    const removed = former
      .filter((form) => !wanted.includes(form))
      .flatMap((form) => {
        const item = read.get(form);
        const isOurs = item && docOf<IdentityOwner>(item).person === before?.id;
        return isOurs ? [this.#rows.remove(rowKey(tenant, form), rowIsStill(item))] : [];
      });
    if (after && added.length + removed.length > WRITES_MAX) throw tooMany(after.id, added.length + removed.length);
    return [...added, ...removed, ...corrected].slice(0, WRITES_MAX);
  }

  async #read(tenant: string, forms: readonly string[]): Promise<Map<string, Item>> {
    const wanted = forms.map((form) => rowKey(tenant, form));
    const items = await this.#rows.batchGetItems(wanted, this.#pause);
    const bySortKey = new Map(items.map((item) => [keyOf(item).sk, item]));
    return new Map(
      forms.flatMap((form, index) => {
        const item = bySortKey.get(wanted[index]?.sk ?? '');
        return item ? [[form, item] as const] : [];
      }),
    );
  }

  async #assertOutdated(tenant: string, form: string, owner: string, wantedBy: string): Promise<void> {
    const person = await this.#person(tenant, owner);
    if (!person || !hasIdentity(person, form)) return;
    throw new CountersignError(
      'CONFLICT',
      `the identity ${form} belongs to ${owner}; it cannot belong to ${wantedBy} too`,
    );
  }

  #person(tenant: string, id: string): Promise<Person | undefined> {
    return this.#rows.get(keys.personKey(tenant, id));
  }
}

const formsOf = (person: Person | undefined): string[] => [...new Set(person?.identities.map(identityForm))];

const rowKey = (tenant: string, identity: string): keys.Key =>
  keys.identityKey(tenant, sha256Hex(identityForm(identity)));

const tooMany = (person: string, count: number): CountersignError =>
  new CountersignError(
    'INPUT_INVALID',
    `this changes ${count} identities of ${person} at once, at most ${WRITES_MAX} are possible; change them in several steps`,
  );
