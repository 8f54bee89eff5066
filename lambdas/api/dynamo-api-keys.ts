import { type DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { docOf, toItem } from '../run/dynamo-items.ts';
import { apiKeyKey } from '../run/dynamo-keys.ts';
import { type ApiKeys, apiKeyHash, type Caller } from './api-keys.ts';

export class DynamoApiKeys implements ApiKeys {
  readonly #client: DynamoDBClient;
  readonly #table: string;

  constructor(client: DynamoDBClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  async find(apiKey: string): Promise<Caller | undefined> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#table, Key: marshall(apiKeyKey(apiKeyHash(apiKey))) }),
    );
    return Item && docOf<Caller>(Item);
  }

  async save(apiKey: string, caller: Caller): Promise<void> {
    await this.#client.send(
      new PutItemCommand({ TableName: this.#table, Item: toItem(apiKeyKey(apiKeyHash(apiKey)), caller) }),
    );
  }
}
