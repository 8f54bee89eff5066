import { AwsError } from '../aws/aws.ts';
import type { ResolvedStack } from '../template/template.ts';

/** What DynamoDB takes of a key, in tables and indexes; the embedded engine takes any. */
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

/** Refuses what real DynamoDB would refuse: a value of a key, or in a condition on a key, that is too long. */
export function assertKeySizes(stack: ResolvedStack, input: object): void {
  const request = input as Request;
  const types = keyTypes(stack);
  const rows = [
    request.Item,
    request.Key,
    ...(request.TransactItems ?? []).flatMap((each) => Object.values(each).flatMap(({ Item, Key }) => [Item, Key])),
    ...Object.values(request.RequestItems ?? {}).flatMap(({ Keys = [] }) => Keys),
    ...conditionsOn(request),
  ];
  for (const [name, value] of rows.flatMap((row) => Object.entries(row ?? {}))) {
    const type = types.get(name);
    if (type === undefined || Buffer.byteLength(value.S ?? '') <= MAX_BYTES[type]) continue;
    const key = type === 'HASH' ? 'hashkey' : 'rangekey';
    throw new AwsError(
      'ValidationException',
      `One or more parameter values were invalid: Size of ${key} has exceeded the maximum size limit of ${MAX_BYTES[type]} bytes`,
    );
  }
}

function keyTypes(stack: ResolvedStack): Map<string, KeyType> {
  const schemas = stack.ofType('AWS::DynamoDB::Table', 'AWS::DynamoDB::GlobalTable');
  return new Map(
    schemas
      .flatMap(({ properties }) => {
        const table = properties as unknown as Schema & { GlobalSecondaryIndexes?: Schema[] };
        return [table, ...(table.GlobalSecondaryIndexes ?? [])].flatMap(({ KeySchema }) => KeySchema);
      })
      .map(({ AttributeName, KeyType }) => [AttributeName, KeyType] as const),
  );
}

/** `pk = :pk AND sk BETWEEN :from AND :to`: which attribute is compared with which values. */
function conditionsOn(request: Request): Attributes[] {
  const { KeyConditionExpression = '', ExpressionAttributeNames = {}, ExpressionAttributeValues = {} } = request;
  const comparisons = KeyConditionExpression.matchAll(/([#\w]+)\s*(?:[<>=]+|BETWEEN)\s*(:\w+)(?:\s+AND\s+(:\w+))?/g);
  return [...comparisons].flatMap(([, name = '', ...values]) =>
    values.flatMap((value) => {
      const compared = value === undefined ? undefined : ExpressionAttributeValues[value];
      return compared ? [{ [ExpressionAttributeNames[name] ?? name]: compared }] : [];
    }),
  );
}
