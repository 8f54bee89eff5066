import { hash } from 'node:crypto';
import { AwsError, type JsonService } from '../aws/aws.ts';
import { type Fields, findOperation, type Operation } from '../cloud/request-fields.ts';
import { type Item, invalid } from './attribute-values.ts';
import { Expressions, type References } from './expressions.ts';
import { ItemStore } from './item-store.ts';
import { checkIndexed, keyIn, keyNames, keyOf, keyUnchanged } from './keys.ts';
import { page, type Query, rangeOf } from './query.ts';
import { addedIndexes, describeTable, type TableShape, tableDefinition } from './table-definitions.ts';

interface Write extends References {
  TableName?: string;
  Item?: Item;
  Key?: Item;
  ConditionExpression?: string;
  UpdateExpression?: string;
  ReturnValues?: string;
  ReturnValuesOnConditionCheckFailure?: string;
}

type Kind = 'Put' | 'Update' | 'Delete' | 'ConditionCheck';

const CONDITIONED = [
  'ConditionExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ReturnValuesOnConditionCheckFailure',
];
const WRITTEN: Record<Kind, string[]> = {
  Put: ['TableName', 'Item', ...CONDITIONED],
  Update: ['TableName', 'Key', 'UpdateExpression', ...CONDITIONED],
  Delete: ['TableName', 'Key', ...CONDITIONED],
  ConditionCheck: ['TableName', 'Key', ...CONDITIONED],
};

/** DynamoDB's limits. */
const BATCH_MAX_BYTES = 16 * 1024 * 1024;
const BATCH_MAX_KEYS = 100;
const TRANSACTION_MAX_ITEMS = 100;
const TRANSACTION_MAX_BYTES = 4 * 1024 * 1024;
/** A transaction with the token of an earlier one is not executed again within this time. */
const TOKEN_VALID_MS = 10 * 60_000;

/**
 * DynamoDB as far as the functions use it: conditional writes, transactions, queries, indexes with keys of text. The rest is
 * refused. One request is executed at a time, so there are no conflicts between transactions; faults inject them.
 */
export class LocalDynamoDb implements JsonService {
  readonly #store: ItemStore;
  readonly #tokens = new Map<string, { digest: string; atMs: number }>();
  readonly #operations: Record<string, Operation<(input: Fields, text?: string) => object>> = {
    GetItem: [['TableName', 'Key', 'ConsistentRead'], (input) => this.#get(input)],
    BatchGetItem: [['RequestItems'], (input) => this.#batchGet(input)],
    Query: [
      [
        ...[
          'TableName',
          'IndexName',
          'KeyConditionExpression',
          'ExpressionAttributeNames',
          'ExpressionAttributeValues',
        ],
        ...['ConsistentRead', 'ScanIndexForward', 'Limit', 'ExclusiveStartKey', 'Select'],
      ],
      (input) => this.#query(input),
    ],
    // For tests, which search everything that is stored. No function has the permission.
    Scan: [
      ['TableName', 'Limit', 'ExclusiveStartKey'],
      (input) =>
        page(
          this.#table(input).scan(input.ExclusiveStartKey as Item | undefined),
          keyNames(this.#table(input).definition),
          input,
        ),
    ],
    PutItem: [[...WRITTEN.Put, 'ReturnValues'], (input) => this.#writeOne('Put', input)],
    UpdateItem: [[...WRITTEN.Update, 'ReturnValues'], (input) => this.#writeOne('Update', input)],
    DeleteItem: [[...WRITTEN.Delete, 'ReturnValues'], (input) => this.#writeOne('Delete', input)],
    TransactWriteItems: [['TransactItems', 'ClientRequestToken'], (input, text) => this.#transact(input, text)],
    CreateTable: [
      ['TableName', 'BillingMode', 'AttributeDefinitions', 'KeySchema', 'GlobalSecondaryIndexes'],
      (input) => this.#create(input as unknown as TableShape & { TableName: string }),
    ],
    DescribeTable: [['TableName'], (input) => describeTable(this.#table(input).definition)],
    UpdateTable: [['TableName', 'AttributeDefinitions', 'GlobalSecondaryIndexUpdates'], (input) => this.#update(input)],
  };

  constructor(dataFolder: string) {
    this.#store = new ItemStore(dataFolder);
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    return this.execute(operation, input) as Fields;
  }

  /** `text`: the request that `input` was read from, if it is known. */
  execute(operation: string, input: Fields, text?: string): object {
    return findOperation('DynamoDB', this.#operations, operation, input)(input, text);
  }

  close(): void {
    this.#store.close();
  }

  #create(shape: TableShape & { TableName: string }): object {
    if (this.#store.definition(shape.TableName)) {
      throw new AwsError('ResourceInUseException', `Table already exists: ${shape.TableName}`);
    }
    const definition = tableDefinition(shape.TableName, shape);
    this.#store.create(definition);
    return { TableDescription: describeTable(definition).Table };
  }

  #update(input: Fields): object {
    const { definition } = this.#table(input);
    for (const [index, schema] of addedIndexes(input)) this.#store.addIndex(definition.name, index, schema);
    return { TableDescription: describeTable(this.#table(input).definition).Table };
  }

  #table({ TableName }: { TableName?: unknown }) {
    const table = this.#store.table(String(TableName));
    if (!table) throw new AwsError('ResourceNotFoundException', 'Requested resource not found');
    return table;
  }

  #get(input: Fields): object {
    const table = this.#table(input);
    const Item = table.get(keyOf(table.definition, input.Key as Item))?.item;
    return Item ? { Item } : {};
  }

  #batchGet({ RequestItems }: Fields): object {
    const requests = Object.entries((RequestItems ?? {}) as Record<string, { Keys: Item[]; ConsistentRead?: boolean }>);
    const wanted = requests.reduce((sum, [, { Keys }]) => sum + Keys.length, 0);
    if (wanted > BATCH_MAX_KEYS) throw invalid('Too many items requested for the BatchGetItem call');
    const Responses: Record<string, Item[]> = {};
    const UnprocessedKeys: Record<string, { Keys: Item[] }> = {};
    let bytes = 0;
    for (const [TableName, { Keys, ...others }] of requests) {
      const table = this.#table({ TableName });
      const keys = Keys.map((key) => keyOf(table.definition, key));
      if (new Set(keys.map((key) => JSON.stringify(key))).size < keys.length) {
        throw invalid('Provided list of item keys contains duplicates');
      }
      Responses[TableName] = [];
      for (const [index, key] of keys.entries()) {
        const found = table.get(key);
        bytes += found?.bytes ?? 0;
        if (bytes > BATCH_MAX_BYTES) {
          UnprocessedKeys[TableName] = { ...others, Keys: keys.slice(index) };
          break;
        }
        if (found) Responses[TableName].push(found.item);
      }
    }
    return { Responses, UnprocessedKeys };
  }

  #query(input: Fields): object {
    const query = input as Query;
    const table = this.#table(input);
    const range = rangeOf(table.definition, query);
    const schema = query.IndexName === undefined ? table.definition : table.definition.indexes[query.IndexName];
    const names = [...keyNames(table.definition), schema?.partition, schema?.sort];
    return page(table.query(range), names, query);
  }

  #writeOne(kind: Kind, input: Fields): object {
    const write = input as Write;
    const prepared = this.#prepare(kind, write);
    return this.#store.transaction(() => {
      const before = prepared.read();
      if (!prepared.holds(before)) {
        const Item = write.ReturnValuesOnConditionCheckFailure === 'ALL_OLD' ? before : undefined;
        const details = Item && { Item };
        throw new AwsError('ConditionalCheckFailedException', 'The conditional request failed', 400, details);
      }
      const after = prepared.write(before);
      return returned(write.ReturnValues, before, after);
    });
  }

  #transact({ TransactItems, ClientRequestToken }: Fields, text?: string): object {
    const items = (TransactItems ?? []) as Partial<Record<Kind, Write>>[];
    if (items.length === 0 || items.length > TRANSACTION_MAX_ITEMS) {
      throw invalid(`Member must have length between 1 and ${TRANSACTION_MAX_ITEMS}: transactItems`);
    }
    const token = typeof ClientRequestToken === 'string' ? ClientRequestToken : undefined;
    const digest = token === undefined ? '' : hash('sha1', text ?? JSON.stringify(items), 'base64');
    if (token !== undefined && this.#isRepeated(token, digest)) return {};
    const writes = items.map((each) => {
      const [[kind, write] = ['', {}]] = Object.entries(each);
      const supported = WRITTEN[kind as Kind];
      const other = Object.keys(write).find((name) => !supported?.includes(name));
      if (!supported || other) throw invalid(`The local DynamoDB does not support ${other ?? kind} in a transaction`);
      return this.#prepare(kind as Kind, write);
    });
    if (new Set(writes.map(({ id }) => id)).size < writes.length) {
      throw invalid('Transaction request cannot include multiple operations on one item');
    }
    if (writes.reduce((sum, { bytes }) => sum + bytes, 0) > TRANSACTION_MAX_BYTES) {
      throw invalid('Collection size exceeded: a transaction has at most 4 MB');
    }
    this.#store.transaction(() => {
      const befores = writes.map(({ read }) => read());
      const met = writes.map(({ holds }, index) => holds(befores[index]));
      if (met.includes(false)) throw cancelled(items, befores, met);
      for (const [index, { write }] of writes.entries()) write(befores[index]);
    });
    if (token !== undefined) this.#tokens.set(token, { digest, atMs: Date.now() });
    return {};
  }

  /** The SDK sends the same token again if it has lost the reply. */
  #isRepeated(token: string, digest: string): boolean {
    for (const [old, { atMs }] of this.#tokens) {
      if (Date.now() - atMs <= TOKEN_VALID_MS) break;
      this.#tokens.delete(old);
    }
    const known = this.#tokens.get(token);
    if (known && known.digest !== digest) {
      const message = 'Request was submitted with the same token but different parameters';
      throw new AwsError('IdempotentParameterMismatchException', message);
    }
    return known !== undefined;
  }

  /** Checks a write before anything is read or changed. */
  #prepare(kind: Kind, write: Write) {
    const table = this.#table(write);
    const { definition } = table;
    const expressions = new Expressions(write, keyNames(definition));
    const { ConditionExpression, UpdateExpression } = write;
    if (kind === 'ConditionCheck' && ConditionExpression === undefined) throw invalid('A condition check needs one');
    const holds = ConditionExpression === undefined ? () => true : expressions.condition(ConditionExpression);
    const update = kind === 'Update' ? expressions.update(UpdateExpression ?? '') : undefined;
    expressions.checkAllUsed();
    const key = kind === 'Put' ? keyIn(definition, write.Item ?? {}) : keyOf(definition, write.Key ?? {});
    const putBytes = kind === 'Put' ? checkIndexed(definition, write.Item ?? {}) : 0;
    const apply = (before: Item | undefined): Item | undefined => {
      if (kind === 'ConditionCheck') return before;
      if (kind === 'Delete') {
        table.delete(key);
        return undefined;
      }
      const after = update ? update(before ?? key) : (write.Item ?? {});
      if (update) keyUnchanged(key, after);
      table.put(after, update ? checkIndexed(definition, after) : putBytes);
      return after;
    };
    return {
      id: JSON.stringify([write.TableName, key]),
      bytes: putBytes,
      holds,
      read: () => table.get(key)?.item,
      write: apply,
    };
  }
}

function returned(ReturnValues: string | undefined, before: Item | undefined, after: Item | undefined): object {
  if (ReturnValues === undefined || ReturnValues === 'NONE') return {};
  if (ReturnValues === 'ALL_OLD') return before ? { Attributes: before } : {};
  if (ReturnValues === 'ALL_NEW') return after ? { Attributes: after } : {};
  throw invalid(`The local DynamoDB does not support ReturnValues ${ReturnValues}`);
}

function cancelled(items: Partial<Record<Kind, Write>>[], befores: (Item | undefined)[], met: boolean[]): AwsError {
  const CancellationReasons = items.map((each, index) => {
    if (met[index]) return { Code: 'None' };
    const [asked] = Object.values(each);
    const Item = asked?.ReturnValuesOnConditionCheckFailure === 'ALL_OLD' ? befores[index] : undefined;
    return { Code: 'ConditionalCheckFailed', Message: 'The conditional request failed', ...(Item && { Item }) };
  });
  const codes = CancellationReasons.map(({ Code }) => Code).join(', ');
  const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`;
  return new AwsError('TransactionCanceledException', message, 400, { CancellationReasons });
}
