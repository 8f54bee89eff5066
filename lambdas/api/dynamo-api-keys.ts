import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { toItem } from '../run/dynamo-items.ts';
import { apiKeyKey } from '../run/dynamo-keys.ts';
import { DynamoRows } from '../run/dynamo-rows.ts';
import { type ApiKeys, apiKeyHash, type Caller } from './api-keys.ts';

export class DynamoApiKeys implements ApiKeys {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
  }

  find(apiKey: string): Promise<Caller | undefined> {
    return this.#rows.get(apiKeyKey(apiKeyHash(apiKey)));
  }

  async save(apiKey: string, caller: Caller): Promise<void> {
    await this.#rows.save(toItem(apiKeyKey(apiKeyHash(apiKey)), caller));
  }
}
