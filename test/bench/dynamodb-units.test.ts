import { expect, it } from 'vitest';
import { DynamoDbUnits } from '../../bench/bill/dynamodb-units.ts';

const INDEX = { name: 'due', partition: 'dueShard', sort: 'dueAt' };
const KEY = { pk: { S: 'RUN#acme#1' }, sk: { S: 'STEP#0001' } };
const row = (bytes: number, more: object = {}) => ({ ...KEY, doc: { S: 'x'.repeat(bytes) }, ...more });
const due = (at: string) => ({ dueShard: { S: 'DUE#1' }, dueAt: { S: at } });

function counted(...calls: [operation: string, input: object, response?: object][]) {
  const units = new DynamoDbUnits([INDEX]);
  for (const [operation, input, response = {}] of calls) units.observe(operation, input, response);
  return units.report();
}

it('a write costs a unit for each kilobyte that begins, and twice as much in a transaction', () => {
  expect(counted(['PutItem', { Item: row(900) }]).writes).toBe(1);
  expect(counted(['PutItem', { Item: row(1_100) }]).writes).toBe(2);
  expect(counted(['TransactWriteItems', { TransactItems: [{ Put: { Item: row(1_100) } }] }])).toMatchObject({
    writes: 4,
    byRow: { 'RUN STEP': 4 },
  });
  expect(counted(['TransactWriteItems', { TransactItems: [{ ConditionCheck: { Key: KEY } }] }]).writes).toBe(2);
});

it('the larger one of the rows before and after counts, also for a delete', () => {
  expect(counted(['PutItem', { Item: row(3_000) }], ['PutItem', { Item: row(10) }]).writes).toBe(3 + 3);
  expect(counted(['PutItem', { Item: row(3_000) }], ['DeleteItem', { Key: KEY }]).writes).toBe(3 + 3);
});

it('bytes of compressed documents count, not their base64 text', () => {
  const doc = { B: Buffer.alloc(950).toString('base64') };
  expect(counted(['PutItem', { Item: { ...KEY, doc } }]).writes).toBe(1);
});

it.each([
  ['new', [row(10, due('a'))], 1],
  ['unchanged', [row(10, due('a')), row(20, due('a'))], 1],
  ['moved', [row(10, due('a')), row(10, due('b'))], 3],
  ['gone', [row(10, due('a')), row(10)], 2],
  ['absent', [row(10), row(20)], 0],
])('an index entry that is %s', (_how, rows, units) => {
  const writes = rows.map((Item): [string, object] => ['TransactWriteItems', { TransactItems: [{ Put: { Item } }] }]);
  expect(counted(...writes).indexWrites).toBe(units);
});

it('an update changes the attributes that it sets, and with them the index', () => {
  const update = {
    Key: KEY,
    UpdateExpression: 'SET #set0 = :set0',
    ExpressionAttributeNames: { '#set0': 'dueAt' },
    ExpressionAttributeValues: { ':set0': { S: 'b' } },
  };
  expect(counted(['PutItem', { Item: row(1_500, due('a')) }], ['UpdateItem', update])).toMatchObject({
    writes: 2 + 2,
    indexWrites: 1 + 2,
  });
});

it('rows of a query are rounded up together, rows of a batch each, and an inconsistent read costs half', () => {
  const Items = [row(100), row(100)];
  expect(counted(['Query', { ConsistentRead: true }, { Items }]).reads).toBe(1);
  expect(counted(['Query', {}, { Items }]).reads).toBe(0.5);
  expect(counted(['GetItem', { ConsistentRead: true }, { Item: row(5_000) }]).reads).toBe(2);
  const batch = { RequestItems: { table: { ConsistentRead: true } } };
  expect(counted(['BatchGetItem', batch, { Responses: { table: Items } }]).reads).toBe(2);
});

it('an operation that it does not know is an error, so that no bill leaves it out', () => {
  expect(() => counted(['TransactGetItems', {}])).toThrow('TransactGetItems');
});
