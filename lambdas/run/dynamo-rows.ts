import {
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { docOf, type Item } from './dynamo-items.ts';
import type { Key } from './dynamo-keys.ts';
import { type Condition, conditionFields, type Pause, put, remove, transact } from './dynamo-transactions.ts';

const BATCH_GET_MAX_KEYS = 100;

/** The rows of one table: read strongly consistent, written on conditions, several at once or not at all. */
export class DynamoRows {
  readonly #client: DynamoDBClient;
  readonly #table: string;
  readonly #pause: Pause;

  constructor(client: DynamoDBClient, table: string, pause: Pause) {
    this.#client = client;
    this.#table = table;
    this.#pause = pause;
  }

  /** One write of a transaction. */
  put(item: Item, condition?: Condition) {
    return put(this.#table, item, condition);
  }

  remove(key: Key) {
    return remove(this.#table, key);
  }

  get table(): string {
    return this.#table;
  }

  transact(writes: Parameters<typeof transact>[1]) {
    return transact(this.#client, writes, this.#pause);
  }

  /** One conditional write; false if its condition does not hold. */
  async putIf(item: Item, condition: Condition): Promise<boolean> {
    try {
      await this.#client.send(
        new PutItemCommand({ TableName: this.#table, Item: item, ...conditionFields(condition) }),
      );
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  }

  async get<T>(key: Key): Promise<T | undefined> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#table, Key: marshall(key), ConsistentRead: true }),
    );
    return Item && docOf<T>(Item);
  }

  async batchGet<T>(wanted: Key[]): Promise<T[]> {
    return (await this.batchGetItems(wanted)).map((item) => docOf<T>(item));
  }

  async batchGetItems(wanted: Key[]): Promise<Item[]> {
    const found: Item[] = [];
    let open = wanted.map((key) => marshall(key));
    while (open.length > 0) {
      const asked = open.slice(0, BATCH_GET_MAX_KEYS);
      const { Responses, UnprocessedKeys } = await this.#client.send(
        new BatchGetItemCommand({ RequestItems: { [this.#table]: { Keys: asked, ConsistentRead: true } } }),
      );
      found.push(...(Responses?.[this.#table] ?? []));
      open = [...open.slice(BATCH_GET_MAX_KEYS), ...(UnprocessedKeys?.[this.#table]?.Keys ?? [])];
    }
    return found;
  }

  /** One page of a query: its rows, and where the next page starts. */
  async page(query: Omit<QueryCommandInput, 'TableName'>): Promise<{ items: Item[]; lastKey?: Item }> {
    const { Items = [], LastEvaluatedKey } = await this.#client.send(
      new QueryCommand({ TableName: this.#table, ...query }),
    );
    return { items: Items, ...(LastEvaluatedKey && { lastKey: LastEvaluatedKey }) };
  }

  /** An index holds keys only, and may lag: the rows it points at are read themselves. */
  async pointedAt<T>(pointers: Item[]): Promise<T[]> {
    return this.batchGet<T>(pointers.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' })));
  }

  async queryAll(query: Omit<QueryCommandInput, 'TableName'>): Promise<Item[]> {
    const items: Item[] = [];
    let ExclusiveStartKey: Item | undefined;
    do {
      const page = await this.page({ ...query, ExclusiveStartKey });
      items.push(...page.items);
      ExclusiveStartKey = page.lastKey;
    } while (ExclusiveStartKey);
    return items;
  }
}
