import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemPause } from '../../entry/system.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import { DynamoChanges } from '../../pipeline/dynamo-definition-changes.ts';
import { apiKeyKey } from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../run/dynamo/dynamo-rows.ts';
import { type ApiKeys, apiKeyHash } from './api-keys.ts';
import type { Caller } from './caller.ts';

/** The history of changes identifies a key by the first digits of its hash, which are useless for a login. */
const SHOWN_HASH_DIGITS = 12;

export class DynamoApiKeys implements ApiKeys {
  readonly #rows: DynamoRows;
  readonly #changes: DynamoChanges;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
    this.#changes = new DynamoChanges(this.#rows, systemPause);
  }

  find(apiKey: string): Promise<Caller | undefined> {
    return this.#rows.get(apiKeyKey(apiKeyHash(apiKey)));
  }

  save(apiKey: string, caller: Caller, by: ChangeAuthor): Promise<void> {
    return this.saveHash(apiKeyHash(apiKey), caller, by);
  }

  /** For a key that this program never sees. */
  saveHash(hash: string, caller: Caller, by: ChangeAuthor): Promise<void> {
    const { tenant } = caller;
    const name = hash.slice(0, SHOWN_HASH_DIGITS);
    return this.#changes.save({ tenant, kind: 'api_key', name, key: apiKeyKey(hash), by }, caller);
  }
}
