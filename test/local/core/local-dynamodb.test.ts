import {
  type AttributeValue,
  BatchGetItemCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandOutput,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamoDb, startDynamoDb } from '../../../local/dynamodb/dynamodb.ts';
import { createTables } from '../../../local/dynamodb/tables.ts';
import { resolveTemplate } from '../../../local/template/template.ts';
import { type Dynoxide, startDynoxide } from '../../fakes/dynoxide.ts';
import { temporaryFolder } from './small-host.ts';
import { runsTable, template } from './small-template.ts';

const TableName = 'Test-Runs';
const SEQUENCES = 150;

let folder: ReturnType<typeof temporaryFolder>;
let own: DynamoDb;
let other: Dynoxide;
let clients: [DynamoDBClient, DynamoDBClient];

beforeAll(async () => {
  folder = temporaryFolder();
  [own, other] = await Promise.all([startDynamoDb(folder.path, {}), startDynoxide()]);
  const stack = resolveTemplate(template(runsTable), { stackName: 'Test' });
  for (const { url } of [own, other]) await createTables(url, stack);
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  clients = [own.url, other.url].map(
    (endpoint) => new DynamoDBClient({ endpoint, region: 'us-east-1', credentials, maxAttempts: 1 }),
  ) as typeof clients;
});
afterAll(async () => {
  for (const client of clients ?? []) client.destroy();
  await own?.stop();
  await other?.stop();
  folder?.remove();
});

type Command =
  | BatchGetItemCommand
  | DeleteItemCommand
  | GetItemCommand
  | PutItemCommand
  | QueryCommand
  | TransactWriteItemsCommand
  | UpdateItemCommand;

/** What a caller can see: the response, or the name of the error with the reasons and the items it carries. */
async function outcome(client: DynamoDBClient, command: Command): Promise<unknown> {
  try {
    const { $metadata: _, ...response } = await client.send(command as GetItemCommand);
    return withoutEmpty(inOrder(response));
  } catch (error) {
    const { name, CancellationReasons, Item } = error as Error & { CancellationReasons?: object[]; Item?: object };
    return withoutEmpty({ name, CancellationReasons: CancellationReasons?.map(withoutMessage), Item });
  }
}
/** A batch has no order. */
function inOrder(response: object): object {
  const items = (response as { Responses?: Record<string, object[]> }).Responses?.[TableName];
  if (!items) return response;
  const sorted = items.map((item) => JSON.stringify(Object.entries(item).sort())).sort();
  return { ...response, Responses: { [TableName]: sorted } };
}
const withoutMessage = ({ Message: _, ...reason }: { Message?: string }) => withoutEmpty(reason);
const withoutEmpty = (fields: object) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && !isEmpty(value)));
const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

const text = fc.constantFrom('a', 'b', 'B', 'aé', 'a😀', '~');
const sortKey = fc.constantFrom('1', '2', '10', 'x', 'xy', 'é');
const number = fc.integer({ min: -3, max: 12 });
const attributes = fc.record(
  { owner: text, count: number, note: fc.oneof(text, number, fc.boolean(), fc.constant(Buffer.from([1, 2]))) },
  { requiredKeys: [] },
);

/** Conditions as the functions make them, and some that are more nested. */
const condition = fc.oneof(
  fc
    .constantFrom('attribute_exists(#pk)', 'attribute_not_exists(#pk)')
    .map((expression) => ({ expression, values: {} })),
  fc
    .record({ operator: fc.constantFrom('=', '<>', '<', '<=', '>', '>='), value: fc.oneof(number, text) })
    .map(({ operator, value }) => ({ expression: `#count ${operator} :v`, values: { ':v': value } })),
  number.map((max) => ({ expression: 'attribute_not_exists(#count) OR #count < :v', values: { ':v': max } })),
  text.map((owner) => ({
    expression: 'attribute_exists(#pk) AND NOT (#owner = :v OR attribute_type(#count, :n))',
    values: { ':v': owner, ':n': 'N' },
  })),
  fc.record({ owner: text, count: number }).map(({ owner, count }) => ({
    expression: '#owner = :o OR (#owner <> :o AND #count = :c)',
    values: { ':o': owner, ':c': count },
  })),
);
type Condition = { expression: string; values: Record<string, unknown> };
const fieldsOf = ({ expression, values }: Condition) => ({
  ConditionExpression: expression,
  ExpressionAttributeNames: Object.fromEntries((expression.match(/#\w+/g) ?? []).map((name) => [name, name.slice(1)])),
  ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: marshall(values) }),
  ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
});

type Keys = (key: { pk: string; sk: string }) => Record<string, AttributeValue>;
const key = fc.record({ pk: fc.constantFrom('p', 'q'), sk: sortKey });

const put = fc
  .record({ key, attributes, condition: fc.option(condition, { nil: undefined }) })
  .map(({ key, attributes, condition }) => (keys: Keys) => ({
    TableName,
    Item: { ...keys(key), ...marshall(attributes) },
    ...(condition && fieldsOf(condition)),
  }));
const remove = fc
  .record({ key, condition: fc.option(condition, { nil: undefined }) })
  .map(({ key, condition }) => (keys: Keys) => ({ TableName, Key: keys(key), ...(condition && fieldsOf(condition)) }));
const update = fc
  .record({ key, condition, owner: text, added: number })
  .map(({ key, condition, owner, added }) => (keys: Keys) => {
    const fields = fieldsOf(condition);
    return {
      TableName,
      Key: keys(key),
      ...fields,
      UpdateExpression: 'SET #set = :set ADD #added :added',
      ExpressionAttributeNames: { ...fields.ExpressionAttributeNames, '#set': 'owner', '#added': 'total' },
      ExpressionAttributeValues: {
        ...fields.ExpressionAttributeValues,
        ...marshall({ ':set': owner, ':added': added }),
      },
    };
  });
const check = fc.record({ key, condition }).map(({ key, condition }) => (keys: Keys) => ({
  TableName,
  Key: keys(key),
  ...fieldsOf(condition),
}));

const sortCondition = fc.oneof(
  fc.constant(undefined),
  fc.record({ from: sortKey, to: sortKey }).map(({ from, to }) => ({
    expression: 'sk BETWEEN :from AND :to',
    values: from <= to ? { ':from': from, ':to': to } : { ':from': to, ':to': from },
  })),
  fc
    .record({ operator: fc.constantFrom('=', '<', '<=', '>', '>='), value: sortKey })
    .map(({ operator, value }) => ({ expression: `sk ${operator} :sk`, values: { ':sk': value } })),
  sortKey.map((prefix) => ({ expression: 'begins_with(sk, :sk)', values: { ':sk': prefix } })),
);
const paging = { limit: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }), forward: fc.boolean() };
const query = fc
  .record({ pk: fc.constantFrom('p', 'q'), sort: sortCondition, ...paging })
  .map(({ pk, sort, limit, forward }) => (keys: Keys) => ({
    TableName,
    KeyConditionExpression: ['pk = :pk', ...(sort ? [sort.expression] : [])].join(' AND '),
    ExpressionAttributeValues: { ':pk': keys({ pk, sk: '' }).pk ?? { S: '' }, ...marshall(sort?.values ?? {}) },
    ConsistentRead: true,
    ScanIndexForward: forward,
    ...(limit && { Limit: limit }),
  }));

type Step = (keys: Keys) => Command;
const step: fc.Arbitrary<Step> = fc.oneof(
  put.map((input) => (keys: Keys) => new PutItemCommand(input(keys))),
  remove.map((input) => (keys: Keys) => new DeleteItemCommand({ ...input(keys), ReturnValues: 'ALL_OLD' })),
  update.map((input) => (keys: Keys) => new UpdateItemCommand({ ...input(keys), ReturnValues: 'ALL_NEW' })),
  key.map((wanted) => (keys: Keys) => new GetItemCommand({ TableName, Key: keys(wanted), ConsistentRead: true })),
  query.map((input) => (keys: Keys) => new QueryCommand(input(keys))),
  fc
    .uniqueArray(key, { minLength: 1, maxLength: 4, selector: ({ pk, sk }) => pk + sk })
    .map(
      (wanted) => (keys: Keys) =>
        new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys: wanted.map(keys) } } }),
    ),
  fc
    .uniqueArray(
      fc.oneof(
        put.map((input) => (keys: Keys) => ({ Put: input(keys) })),
        remove.map((input) => (keys: Keys) => ({ Delete: input(keys) })),
        update.map((input) => (keys: Keys) => ({ Update: input(keys) })),
        check.map((input) => (keys: Keys) => ({ ConditionCheck: input(keys) })),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((items) => (keys: Keys) => new TransactWriteItemsCommand({ TransactItems: items.map((item) => item(keys)) })),
);

let sequence = 0;

describe('the DynamoDB of the local host', () => {
  it('gives the same responses as another implementation, for random sequences of requests', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        sequence += 1;
        const keys: Keys = ({ pk, sk }) => marshall({ pk: `${sequence}-${pk}`, sk });
        for (const each of steps) {
          const command = each(keys);
          const [ours, theirs] = await Promise.all(clients.map((client) => outcome(client, command)));
          expect({ input: command.input, outcome: ours }).toEqual({ input: command.input, outcome: theirs });
        }
      }),
      { numRuns: SEQUENCES },
    );
  }, 120_000);

  const both = (command: () => Command) => Promise.all(clients.map((client) => outcome(client, command())));

  it('returns pages of an index in both directions, each item once', async () => {
    const owner = 'many';
    for (const client of clients) {
      for (const sk of ['1', '2', '3', '4', '5']) {
        await client.send(new PutItemCommand({ TableName, Item: marshall({ pk: `index-${sk}`, sk, owner }) }));
      }
    }
    for (const ScanIndexForward of [true, false]) {
      const found = await Promise.all(
        clients.map(async (client) => {
          const items: (string | undefined)[] = [];
          let ExclusiveStartKey: Record<string, AttributeValue> | undefined;
          do {
            const page: QueryCommandOutput = await client.send(
              new QueryCommand({
                TableName,
                IndexName: 'byOwner',
                KeyConditionExpression: '#owner = :owner',
                ExpressionAttributeNames: { '#owner': 'owner' },
                ExpressionAttributeValues: marshall({ ':owner': owner }),
                ScanIndexForward,
                Limit: 2,
                ExclusiveStartKey,
              }),
            );
            items.push(...(page.Items ?? []).map(({ pk }) => pk?.S));
            ExclusiveStartKey = page.LastEvaluatedKey;
          } while (ExclusiveStartKey);
          return items.sort();
        }),
      );
      expect(found[0]).toEqual(['index-1', 'index-2', 'index-3', 'index-4', 'index-5']);
      expect(found[1]).toEqual(found[0]);
    }
  });

  it('ends a page after a megabyte', async () => {
    const Item = (sk: string) => marshall({ pk: 'large', sk, text: 'x'.repeat(300_000) });
    for (const client of clients) {
      for (const sk of ['1', '2', '3', '4', '5']) await client.send(new PutItemCommand({ TableName, Item: Item(sk) }));
    }
    const pages = await Promise.all(
      clients.map((client) =>
        client.send(
          new QueryCommand({
            TableName,
            KeyConditionExpression: 'pk = :pk',
            ExpressionAttributeValues: marshall({ ':pk': 'large' }),
          }),
        ),
      ),
    );
    const seen = pages.map(({ Count, LastEvaluatedKey }) => ({ Count, LastEvaluatedKey }));
    expect(seen[0]).toEqual({ Count: 3, LastEvaluatedKey: marshall({ pk: 'large', sk: '3' }) });
    expect(seen[1]).toEqual(seen[0]);
  });

  it('executes a transaction once that is sent again with its token, and refuses another one with it', async () => {
    const key = marshall({ pk: 'token', sk: '1' });
    const add = (amount: number) => () =>
      new TransactWriteItemsCommand({
        ClientRequestToken: 'the-same-token',
        TransactItems: [
          {
            Update: {
              TableName,
              Key: key,
              UpdateExpression: 'ADD #n :n',
              ExpressionAttributeNames: { '#n': 'total' },
              ExpressionAttributeValues: marshall({ ':n': amount }),
            },
          },
        ],
      });
    for (const amount of [1, 1]) expect(await both(add(amount))).toEqual([{}, {}]);
    const mismatch = { name: 'IdempotentParameterMismatchException' };
    expect(await both(add(2))).toEqual([mismatch, mismatch]);
    const { Item } = await clients[0].send(new GetItemCommand({ TableName, Key: key }));
    expect(Item?.total).toEqual({ N: '1' });
  });

  it.each([
    ['a name that is not used', { ExpressionAttributeNames: { '#x': 'x' } }],
    ['a value that is not defined', { ConditionExpression: '#x = :x', ExpressionAttributeNames: { '#x': 'x' } }],
    ['no names', { ConditionExpression: 'attribute_exists(pk)', ExpressionAttributeNames: {} }],
    ['a reserved word', { ConditionExpression: 'attribute_not_exists(status)' }],
    ['a number of more than 38 digits', { Item: { ...marshall({ pk: 'p', sk: '1' }), n: { N: '1'.repeat(39) } } }],
    ['a key that is empty', { Item: marshall({ pk: '', sk: '1' }) }],
    ['a key that is missing', { Item: marshall({ pk: 'p' }) }],
    ['a key of an index with another type', { Item: marshall({ pk: 'p', sk: '1', owner: 1 }) }],
    ['an item of more than 400 KB', { Item: marshall({ pk: 'p', sk: '1', text: 'x'.repeat(410_000) }) }],
  ])('refuses %s', async (_what, fields) => {
    const valid = { TableName, Item: marshall({ pk: 'p', sk: '1' }) };
    const refused = { name: 'ValidationException' };
    expect(await both(() => new PutItemCommand({ ...valid, ...fields }))).toEqual([refused, refused]);
  });

  const REFUSED = [{ name: 'ValidationException' }, { name: 'ValidationException' }];

  it.each([
    ['the same attribute twice', 'SET #a = :v REMOVE #a'],
    ['a section twice', 'SET #a = :v SET #b = :v'],
  ])('refuses an update that has %s', async (_what, UpdateExpression) => {
    const references = {
      ExpressionAttributeNames: Object.fromEntries(
        (UpdateExpression.match(/#\w/g) ?? []).map((name) => [name, name.slice(1)]),
      ),
      ExpressionAttributeValues: marshall({ ':v': 1 }),
    };
    const Key = marshall({ pk: 'p', sk: '1' });
    expect(await both(() => new UpdateItemCommand({ TableName, Key, UpdateExpression, ...references }))).toEqual(
      REFUSED,
    );
  });

  it.each([
    ['a range that ends before it begins', 'pk = :pk AND sk BETWEEN :a AND :b', { ':a': '2', ':b': '1' }, {}],
    [
      'consistent reads of an index',
      '#o = :pk',
      {},
      { IndexName: 'byOwner', ConsistentRead: true, ExpressionAttributeNames: { '#o': 'owner' } },
    ],
  ])('refuses a query with %s', async (_what, KeyConditionExpression, values, fields) => {
    const ExpressionAttributeValues = marshall({ ':pk': 'p', ...values });
    const command = () => new QueryCommand({ TableName, KeyConditionExpression, ExpressionAttributeValues, ...fields });
    expect(await both(command)).toEqual(REFUSED);
  });

  const long = (bytes: number) => 'é'.repeat(bytes / 2);
  const put = (fields: object) => ({ TableName, Item: marshall({ pk: 'long', sk: '1', ...fields }) });

  it.each([
    ['a partition key of more than 2,048 bytes', new PutItemCommand(put({ pk: long(2_050) }))],
    ['a sort key of more than 1,024 bytes', new PutItemCommand(put({ sk: long(1_026) }))],
    ['a key of an index of more than 2,048 bytes', new PutItemCommand(put({ owner: long(2_050) }))],
    [
      'such a key in a transaction',
      new TransactWriteItemsCommand({ TransactItems: [{ Put: put({ sk: long(1_026) }) }] }),
    ],
    ['such a key that is read', new GetItemCommand({ TableName, Key: marshall({ pk: 'long', sk: long(1_026) }) })],
    [
      'a query for such a key',
      new QueryCommand({
        TableName,
        KeyConditionExpression: 'pk = :pk AND sk > :sk',
        ExpressionAttributeValues: marshall({ ':pk': 'long', ':sk': long(1_026) }),
      }),
    ],
  ])('refuses %s, which the other implementation does not do everywhere', async (_what, command) => {
    expect(await outcome(clients[0], command)).toEqual(REFUSED[0]);
  });

  it('accepts keys of the greatest size', async () => {
    const largest = put({ pk: long(2_048), sk: long(1_024), owner: long(2_048) });
    expect(await both(() => new PutItemCommand(largest))).toEqual([{}, {}]);
  });

  it('refuses a query with an empty key, which the other implementation does not', async () => {
    const values = marshall({ ':pk': 'p', ':sk': '' });
    const condition = { KeyConditionExpression: 'pk = :pk AND sk = :sk', ExpressionAttributeValues: values };
    expect(await outcome(clients[0], new QueryCommand({ TableName, ...condition }))).toEqual(REFUSED[0]);
  });
});
