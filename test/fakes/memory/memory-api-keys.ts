import {
  type ApiKey,
  type ApiKeys,
  apiKeyHash,
  type NamedKey,
  nameOfKey,
  type StoredKey,
} from '../../../lambdas/api/authorizer/api-keys.ts';
import type { Change, ChangeAuthor } from '../../../lambdas/pipeline/definition-changes.ts';
import { recorded } from '../../../lambdas/pipeline/definition-changes.ts';
import { BY_SETUP } from './memory-changes.ts';
import { MemoryRows } from './memory-rows.ts';

export class MemoryApiKeys implements ApiKeys {
  readonly #keys = new MemoryRows<StoredKey>();
  readonly #names = new MemoryRows<string>();
  /** The history of changes. */
  readonly changes: Change[] = [];

  async find(apiKey: string): Promise<StoredKey | undefined> {
    return this.#keys.get(apiKeyHash(apiKey));
  }

  async save(apiKey: string, key: ApiKey, by: ChangeAuthor = BY_SETUP): Promise<void> {
    const hash = apiKeyHash(apiKey);
    const named = { ...key, name: nameOfKey(key, hash) };
    this.#keys.set(hash, '', { key: named, hash });
    this.#names.set(key.tenant, named.name, hash);
    this.#record(named, by, 'created');
  }

  async create(apiKey: string, key: NamedKey, by: ChangeAuthor): Promise<boolean> {
    if (this.#names.get(key.tenant, key.name) !== undefined) return false;
    await this.save(apiKey, key, by);
    return true;
  }

  async named(tenant: string, name: string): Promise<StoredKey | undefined> {
    const hash = this.#names.get(tenant, name);
    return hash === undefined ? undefined : this.#keys.get(hash);
  }

  async list(tenant: string): Promise<StoredKey[]> {
    return this.#names.inPartition(tenant).flatMap((hash) => this.#keys.get(hash) ?? []);
  }

  async revoke({ key, hash }: StoredKey, by: ChangeAuthor): Promise<boolean> {
    if (!this.#keys.get(hash)) return false;
    this.#keys.set(hash, '', undefined);
    this.#names.set(key.tenant, key.name, undefined);
    this.#record(key, by, 'deleted');
    return true;
  }

  async recordUse({ hash }: StoredKey, lastUsedAt: string): Promise<void> {
    const stored = this.#keys.get(hash);
    if (stored) this.#keys.set(hash, '', { ...stored, lastUsedAt });
  }

  #record(key: NamedKey, by: ChangeAuthor, action: 'created' | 'deleted'): void {
    const [before, after] = action === 'created' ? [null, recorded(key)] : [recorded(key), null];
    this.changes.push({ ...by, kind: 'api_key', name: key.name, action, before, after });
  }
}
