import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemPause } from '../../entry/system.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import { DynamoChanges } from '../../pipeline/dynamo-definition-changes.ts';
import { apiKeyKey } from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../run/dynamo/dynamo-rows.ts';
import { type ApiKeys, apiKeyHash } from './api-keys.ts';
import type { Caller } from './caller.ts';

/** The history names a key by the start of its hash, which tells keys apart and lets nobody in. */
const SHOWN_OF_HASH = 12;

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
    const hash = apiKeyHash(apiKey);
    const { tenant } = caller;
    const name = hash.slice(0, SHOWN_OF_HASH);
    return this.#changes.save({ tenant, kind: 'api_key', name, key: apiKeyKey(hash), by }, caller);
  }
}
