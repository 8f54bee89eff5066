import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemPause } from '../../entry/system.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import { DynamoChanges, type Saved } from '../../pipeline/dynamo-definition-changes.ts';
import { ROW_EXISTS, ROW_IS_NEW } from '../../run/dynamo/dynamo-conditions.ts';
import { docOf, type Item, keyOf, toItem } from '../../run/dynamo/dynamo-items.ts';
import { apiKeyKey, keyNameKey, keyNamesPartition } from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows, wholePartition } from '../../run/dynamo/dynamo-rows.ts';
import { type ApiKey, type ApiKeys, apiKeyHash, type NamedKey, nameOfKey, type StoredKey } from './api-keys.ts';

/** The row that lists a key by its name. */
interface KeyName {
  hash: string;
}

/** One row has the key by its hash, for the authorizer; another has the hash by the name of the key, for lists. */
export class DynamoApiKeys implements ApiKeys {
  readonly #rows: DynamoRows;
  readonly #changes: DynamoChanges;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
    this.#changes = new DynamoChanges(this.#rows, systemPause);
  }

  find(apiKey: string): Promise<StoredKey | undefined> {
    return this.#withHash(apiKeyHash(apiKey));
  }

  save(apiKey: string, key: ApiKey, by: ChangeAuthor): Promise<void> {
    return this.saveHash(apiKeyHash(apiKey), key, by);
  }

  /** For a key that this program never sees. */
  saveHash(hash: string, key: ApiKey, by: ChangeAuthor): Promise<void> {
    const listed = this.#rows.put(this.#nameItem(key, hash));
    return this.#changes.save({ ...this.#saved(key, hash, by), besides: [listed] }, key);
  }

  create(apiKey: string, key: NamedKey, by: ChangeAuthor): Promise<boolean> {
    const hash = apiKeyHash(apiKey);
    const listed = this.#rows.put(this.#nameItem(key, hash), ROW_IS_NEW);
    return this.#changes.saveNew({ ...this.#saved(key, hash, by), besides: [listed] }, key);
  }

  async named(tenant: string, name: string): Promise<StoredKey | undefined> {
    const found = await this.#rows.get<KeyName>(keyNameKey(tenant, name));
    return found && this.#withHash(found.hash);
  }

  async list(tenant: string): Promise<StoredKey[]> {
    const names = await this.#rows.range(wholePartition(keyNamesPartition(tenant)));
    const hashes = names.map((item) => docOf<KeyName>(item).hash);
    const found = await this.#rows.batchGetItems(hashes.map(apiKeyKey), systemPause);
    const byHash = new Map(found.map((item) => [hashOfItem(item), storedKey(item)]));
    return hashes.flatMap((hash) => byHash.get(hash) ?? []);
  }

  revoke({ key, hash }: StoredKey, by: ChangeAuthor): Promise<boolean> {
    const listed = this.#rows.remove(keyNameKey(key.tenant, key.name));
    return this.#changes.delete({ ...this.#saved(key, hash, by), besides: [listed] });
  }

  async recordUse({ key, hash }: StoredKey, at: string): Promise<void> {
    // A revoked key must not come back.
    const isThere = await this.#rows.update(apiKeyKey(hash), { lastUsedAt: at }, ROW_EXISTS);
    // Keys of the first version have no row that lists them.
    if (isThere && key.createdAt === undefined) await this.#rows.save(this.#nameItem(key, hash), ROW_IS_NEW);
  }

  async #withHash(hash: string): Promise<StoredKey | undefined> {
    const item = await this.#rows.getItem(apiKeyKey(hash));
    return item && storedKey(item);
  }

  #nameItem(key: ApiKey, hash: string): Item {
    return toItem(keyNameKey(key.tenant, nameOfKey(key, hash)), { hash } satisfies KeyName);
  }

  #saved(key: ApiKey, hash: string, by: ChangeAuthor): Saved {
    return { tenant: key.tenant, kind: 'api_key', name: nameOfKey(key, hash), key: apiKeyKey(hash), by };
  }
}

const hashOfItem = (item: Item): string => keyOf(item).pk.split('#')[1] ?? '';

function storedKey(item: Item): StoredKey {
  const hash = hashOfItem(item);
  const key = docOf<ApiKey>(item);
  const lastUsedAt = item.lastUsedAt?.S;
  return { key: { ...key, name: nameOfKey(key, hash) }, hash, ...(lastUsedAt !== undefined && { lastUsedAt }) };
}
