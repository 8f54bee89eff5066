import {
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
  TransactionConflictException,
  type TransactWriteItem,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { docOf, type Item } from './dynamo-items.ts';
import { assertSortKeys, FIRST, type Index, type Key, LAST } from './dynamo-keys.ts';
import { type Condition, check, conditionFields, type Pause, put, remove, transact } from './dynamo-transactions.ts';

const BATCH_GET_MAX_KEYS = 100;
/** Consecutive attempts that read nothing: about six seconds with pauses, less than a worker has for a commit. */
const UNREAD_ATTEMPTS_MAX = 8;
const UNREAD_BACKOFF_MS = 25;

/** Rows of one partition, from one sort key to another, inclusive. */
export interface Range {
  pk: string;
  from: string;
  to: string;
}

/** Rows of an index, from one value of its sort attribute to another, inclusive. */
interface IndexRange {
  from?: string;
  upTo?: string;
  newestFirst?: boolean;
}

export const under = (pk: string, prefix: string): Range => ({ pk, from: prefix, to: `${prefix}${LAST}` });
export const wholePartition = (pk: string): Range => ({ pk, from: FIRST, to: LAST });

/** The rows of one table: strongly consistent reads, conditional writes, transactions. */
export class DynamoRows {
  readonly #client: DynamoDBClient;
  readonly #table: string;

  constructor(client: DynamoDBClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  /** One write of a transaction. */
  put(item: Item, condition?: Condition) {
    return put(this.#table, item, condition);
  }

  remove(key: Key, condition?: Condition) {
    return remove(this.#table, key, condition);
  }

  check(key: Key, condition: Condition) {
    return check(this.#table, key, condition);
  }

  get table(): string {
    return this.#table;
  }

  transact(writes: TransactWriteItem[], pause: Pause) {
    return transact(this.#client, writes, pause);
  }

  /** Writes one row without a transaction. False if the condition is not met. */
  async save(item: Item, condition?: Condition): Promise<boolean> {
    try {
      await this.#client.send(
        new PutItemCommand({ TableName: this.#table, Item: item, ...(condition && conditionFields(condition)) }),
      );
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  }

  /** Deletes one row without a transaction, unless the condition is not met. */
  async delete(key: Key, pause: Pause, condition?: Condition): Promise<void> {
    const fields = condition && conditionFields(condition);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#client.send(new DeleteItemCommand({ TableName: this.#table, Key: marshall(key), ...fields }));
        return;
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return;
        // A transaction is writing the row.
        if (!(error instanceof TransactionConflictException) || attempt === UNREAD_ATTEMPTS_MAX) throw error;
        await pause.sleep(pause.random() * UNREAD_BACKOFF_MS * 2 ** attempt);
      }
    }
  }

  /** Sets attributes. False if the condition is not met or a transaction is changing the row. */
  async update(key: Key, attributes: Record<string, string | number>, condition: Condition): Promise<boolean> {
    const names = Object.keys(attributes);
    const fields = conditionFields(condition);
    try {
      await this.#client.send(
        new UpdateItemCommand({
          TableName: this.#table,
          Key: marshall(key),
          ...fields,
          UpdateExpression: `SET ${names.map((_, index) => `#set${index} = :set${index}`).join(', ')}`,
          ExpressionAttributeNames: {
            ...fields.ExpressionAttributeNames,
            ...Object.fromEntries(names.map((name, index) => [`#set${index}`, name])),
          },
          ExpressionAttributeValues: {
            ...fields.ExpressionAttributeValues,
            ...marshall(Object.fromEntries(names.map((name, index) => [`:set${index}`, attributes[name]]))),
          },
        }),
      );
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException || error instanceof TransactionConflictException)
        return false;
      throw error;
    }
  }

  async get<T>(key: Key): Promise<T | undefined> {
    const item = await this.getItem(key);
    return item && docOf<T>(item);
  }

  async getItem(key: Key): Promise<Item | undefined> {
    assertSortKeys(key.sk);
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#table, Key: marshall(key), ConsistentRead: true }),
    );
    return Item;
  }

  async batchGet<T>(wanted: Key[], pause: Pause): Promise<T[]> {
    return (await this.batchGetItems(wanted, pause)).map((item) => docOf<T>(item));
  }

  /** Retries keys that DynamoDB did not read (throttling, full response), with increasing pauses. */
  async batchGetItems(wanted: Key[], pause: Pause): Promise<Item[]> {
    assertSortKeys(...wanted.map(({ sk }) => sk));
    const found: Item[] = [];
    let open = wanted.map((key) => marshall(key));
    for (let emptyReads = 0; open.length > 0; ) {
      const asked = open.slice(0, BATCH_GET_MAX_KEYS);
      const { Responses, UnprocessedKeys } = await this.#client.send(
        new BatchGetItemCommand({ RequestItems: { [this.#table]: { Keys: asked, ConsistentRead: true } } }),
      );
      const unread = UnprocessedKeys?.[this.#table]?.Keys ?? [];
      found.push(...(Responses?.[this.#table] ?? []));
      open = [...unread, ...open.slice(BATCH_GET_MAX_KEYS)];
      emptyReads = unread.length < asked.length ? 0 : emptyReads + 1;
      if (emptyReads === UNREAD_ATTEMPTS_MAX) {
        throw new Error(
          `DynamoDB left ${unread.length} keys unread ${emptyReads} times; it is throttled, try again later`,
        );
      }
      if (unread.length > 0) await pause.sleep(pause.random() * UNREAD_BACKOFF_MS * 2 ** emptyReads);
    }
    return found;
  }

  /** In the order of their sort keys. */
  async range(range: Range, { limit = Number.POSITIVE_INFINITY, newestFirst = false } = {}): Promise<Item[]> {
    const found: Item[] = [];
    for await (const items of this.pages(range, { limit, newestFirst })) found.push(...items);
    return found;
  }

  /** A response of DynamoDB has at most 1 MB. The next page is read when it is needed. */
  async *pages(
    { pk, from, to }: Range,
    { limit = Number.POSITIVE_INFINITY, newestFirst = false } = {},
  ): AsyncGenerator<Item[]> {
    assertSortKeys(from, to);
    let left = limit;
    let ExclusiveStartKey: Item | undefined;
    do {
      const page = await this.#query({
        KeyConditionExpression: 'pk = :pk AND sk BETWEEN :from AND :to',
        ExpressionAttributeValues: marshall({ ':pk': pk, ':from': from, ':to': to }),
        ConsistentRead: true,
        ScanIndexForward: !newestFirst,
        ...(Number.isFinite(left) && { Limit: left }),
        ExclusiveStartKey,
      });
      yield page.items;
      left -= page.items.length;
      ExclusiveStartKey = page.lastKey;
    } while (ExclusiveStartKey && left > 0);
  }

  /** One page of an index: keys of rows, and the start of the next page. */
  indexPage(
    { name, partition, sort }: Index,
    value: string,
    { limit, from = FIRST, upTo = LAST, newestFirst = false, after }: IndexRange & { limit: number; after?: Item },
  ): Promise<{ items: Item[]; lastKey?: Item }> {
    return this.#query({
      IndexName: name,
      KeyConditionExpression: `${partition} = :partition AND ${sort} BETWEEN :from AND :upTo`,
      ExpressionAttributeValues: marshall({ ':partition': value, ':from': from, ':upTo': upTo }),
      ScanIndexForward: !newestFirst,
      Limit: limit,
      ExclusiveStartKey: after,
    });
  }

  /** The number of rows with this value, counted in at most `pagesMax` responses. */
  async indexCount({ name, partition }: Index, value: string, pagesMax: number): Promise<number> {
    let count = 0;
    let ExclusiveStartKey: Item | undefined;
    for (let page = 0; page < pagesMax && (page === 0 || ExclusiveStartKey); page += 1) {
      const { Count = 0, LastEvaluatedKey } = await this.#client.send(
        new QueryCommand({
          TableName: this.#table,
          IndexName: name,
          KeyConditionExpression: `${partition} = :partition`,
          ExpressionAttributeValues: marshall({ ':partition': value }),
          Select: 'COUNT',
          ExclusiveStartKey,
        }),
      );
      count += Count;
      ExclusiveStartKey = LastEvaluatedKey;
    }
    return count;
  }

  async #query(query: Omit<QueryCommandInput, 'TableName'>): Promise<{ items: Item[]; lastKey?: Item }> {
    const { Items = [], LastEvaluatedKey } = await this.#client.send(
      new QueryCommand({ TableName: this.#table, ...query }),
    );
    return { items: Items, ...(LastEvaluatedKey && { lastKey: LastEvaluatedKey }) };
  }
}
