import { AwsError } from '../aws/aws.ts';
import type { ResolvedStack } from '../template/template.ts';
import { tablesOf } from './tables.ts';

/** DynamoDB's limits for the keys of tables and indexes. The embedded engine has none. */
const MAX_BYTES = { HASH: 2_048, RANGE: 1_024 } as const;
type KeyType = keyof typeof MAX_BYTES;

interface Schema {
  KeySchema: { AttributeName: string; KeyType: KeyType }[];
}
type Attributes = Record<string, { S?: string }>;
interface Request {
  Item?: Attributes;
  Key?: Attributes;
  TransactItems?: Record<string, { Item?: Attributes; Key?: Attributes }>[];
  RequestItems?: Record<string, { Keys?: Attributes[] }>;
  KeyConditionExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Attributes;
}

/** Refuses a key value, or a value compared with a key, that is too long for DynamoDB. */
export function assertKeySizes(stack: ResolvedStack, input: object): void {
  const request = input as Request;
  const types = keyTypes(stack);
  assertRow(types, request.Item);
  assertRow(types, request.Key);
  for (const each of request.TransactItems ?? []) {
    for (const { Item, Key } of Object.values(each)) assertRow(types, Item ?? Key);
  }
  for (const { Keys = [] } of Object.values(request.RequestItems ?? {})) for (const key of Keys) assertRow(types, key);
  for (const compared of conditionsOn(request)) assertRow(types, compared);
}

function assertRow(types: KeyTypes, row: Attributes | undefined): void {
  if (!row) return;
  for (const [name, type] of types) {
    const text = row[name]?.S;
    if (typeof text !== 'string' || Buffer.byteLength(text) <= MAX_BYTES[type]) continue;
    const key = type === 'HASH' ? 'hashkey' : 'rangekey';
    throw new AwsError(
      'ValidationException',
      `One or more parameter values were invalid: Size of ${key} has exceeded the maximum size limit of ${MAX_BYTES[type]} bytes`,
    );
  }
}

/** Of each attribute that is a key. */
type KeyTypes = readonly (readonly [name: string, type: KeyType])[];

const typesOfStack = new WeakMap<ResolvedStack, KeyTypes>();

function keyTypes(stack: ResolvedStack): KeyTypes {
  const known = typesOfStack.get(stack) ?? readKeyTypes(stack);
  typesOfStack.set(stack, known);
  return known;
}

function readKeyTypes(stack: ResolvedStack): KeyTypes {
  const types = new Map(
    tablesOf(stack)
      .flatMap(({ properties }) => {
        const table = properties as unknown as Schema & { GlobalSecondaryIndexes?: Schema[] };
        return [table, ...(table.GlobalSecondaryIndexes ?? [])].flatMap(({ KeySchema }) => KeySchema);
      })
      .map(({ AttributeName, KeyType }) => [AttributeName, KeyType] as const),
  );
  return [...types];
}

/** The attributes and the values that a key condition compares: `pk = :pk AND sk BETWEEN :from AND :to`. */
function conditionsOn(request: Request): Attributes[] {
  const { KeyConditionExpression, ExpressionAttributeNames = {}, ExpressionAttributeValues = {} } = request;
  if (KeyConditionExpression === undefined) return [];
  const comparisons = KeyConditionExpression.matchAll(/([#\w]+)\s*(?:[<>=]+|BETWEEN)\s*(:\w+)(?:\s+AND\s+(:\w+))?/g);
  return [...comparisons].flatMap(([, name = '', ...values]) =>
    values.flatMap((value) => {
      const compared = value === undefined ? undefined : ExpressionAttributeValues[value];
      return compared ? [{ [ExpressionAttributeNames[name] ?? name]: compared }] : [];
    }),
  );
}
