import { ACCOUNT, REGION } from '../aws/aws.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import type { AccessCheck, JsonInput } from './access-checks.ts';
import type { ConditionContext } from './conditions.ts';

type AttributeMap = Record<string, Record<string, unknown>>;

/** How each member of a transaction is authorised. */
const TRANSACTION_ACTIONS: Record<string, string> = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
  Get: 'GetItem',
};

const EXPRESSIONS = [
  'ProjectionExpression',
  'ConditionExpression',
  'UpdateExpression',
  'FilterExpression',
  'KeyConditionExpression',
];

export function dynamoDbChecks(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck[] {
  switch (operation) {
    case 'TransactWriteItems':
    case 'TransactGetItems':
      return transactionChecks(operation, input, stack);
    case 'BatchGetItem':
    case 'BatchWriteItem':
      return batchChecks(operation, input, stack);
    case 'ListTables':
    case 'ListStreams':
      return [{ action: `dynamodb:${operation}`, resource: '*' }];
    default:
      return [itemCheck(operation, input, stack)];
  }
}

function transactionChecks(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck[] {
  const items = (input.TransactItems ?? []) as Record<string, JsonInput>[];
  return items.flatMap((item) =>
    Object.entries(item).map(([kind, request]) => {
      const check = itemCheck(TRANSACTION_ACTIONS[kind] ?? kind, request, stack);
      return { ...check, context: { ...check.context, 'dynamodb:EnclosingOperation': operation } };
    }),
  );
}

function batchChecks(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck[] {
  return Object.entries((input.RequestItems ?? {}) as Record<string, unknown>).map(([tableName, request]) => {
    const table = findTable(tableName, stack);
    const items = operation === 'BatchGetItem' ? keysOfBatchGet(request) : itemsOfBatchWrite(request);
    const partitionKey = partitionKeyName(table, undefined);
    const context: ConditionContext = {
      'dynamodb:LeadingKeys': [...new Set(items.flatMap((item) => keyValue(item, partitionKey)))],
      'dynamodb:Attributes': [...new Set(items.flatMap((item) => Object.keys(item)))],
    };
    return { action: `dynamodb:${operation}`, resource: tableArn(tableName, table), context };
  });
}

function keysOfBatchGet(request: unknown): AttributeMap[] {
  return ((request as { Keys?: AttributeMap[] }).Keys ?? []) as AttributeMap[];
}

function itemsOfBatchWrite(request: unknown): AttributeMap[] {
  const writes = request as { PutRequest?: { Item: AttributeMap }; DeleteRequest?: { Key: AttributeMap } }[];
  return writes.flatMap((write) => [write.PutRequest?.Item ?? write.DeleteRequest?.Key ?? []].flat());
}

function itemCheck(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck {
  const action = `dynamodb:${operation}`;
  if (typeof input.StreamArn === 'string') return { action, resource: input.StreamArn };
  if (input.TableName === undefined) return { action, resource: '*' };
  const tableName = String(input.TableName);
  const table = findTable(tableName, stack);
  const arn = tableArn(tableName, table);
  const index = typeof input.IndexName === 'string' ? input.IndexName : undefined;
  return {
    action,
    resource: index ? `${arn}/index/${index}` : arn,
    context: itemContext(operation, input, table, index),
  };
}

function itemContext(
  operation: string,
  input: JsonInput,
  table: ResolvedResource | undefined,
  index: string | undefined,
): ConditionContext {
  const item = (input.Key ?? input.Item ?? {}) as AttributeMap;
  const partitionKey = partitionKeyName(table, index);
  const leading = operation === 'Query' ? queriedKey(input, partitionKey) : keyValue(item, partitionKey);
  const context: ConditionContext = {
    'dynamodb:LeadingKeys': leading,
    'dynamodb:Attributes': [...new Set([...Object.keys(item), ...mentionedAttributes(input)])],
  };
  if (['GetItem', 'Query', 'Scan'].includes(operation)) {
    const whole = input.ProjectionExpression === undefined ? 'ALL_ATTRIBUTES' : 'SPECIFIC_ATTRIBUTES';
    context['dynamodb:Select'] = String(input.Select ?? whole);
  }
  if (typeof input.ReturnValues === 'string') context['dynamodb:ReturnValues'] = input.ReturnValues;
  return context;
}

/** A table may be named by its ARN. */
function findTable(nameOrArn: string, stack: ResolvedStack): ResolvedResource | undefined {
  const name = nameOrArn.split('/').at(-1);
  return stack.ofType('AWS::DynamoDB::Table', 'AWS::DynamoDB::GlobalTable').find((table) => table.ref === name);
}

function tableArn(nameOrArn: string, table: ResolvedResource | undefined): string {
  return table?.arn ?? `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${nameOrArn.split('/').at(-1)}`;
}

function partitionKeyName(table: ResolvedResource | undefined, index: string | undefined): string | undefined {
  const { GlobalSecondaryIndexes, KeySchema } = (table?.properties ?? {}) as {
    KeySchema?: { AttributeName: string; KeyType: string }[];
    GlobalSecondaryIndexes?: { IndexName: string; KeySchema: { AttributeName: string; KeyType: string }[] }[];
  };
  const indexKeys = GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === index)?.KeySchema;
  return (indexKeys ?? KeySchema)?.find(({ KeyType }) => KeyType === 'HASH')?.AttributeName;
}

function keyValue(item: AttributeMap, partitionKey: string | undefined): string[] {
  const value = partitionKey === undefined ? undefined : item[partitionKey];
  return value === undefined ? [] : Object.values(value).map(String);
}

/** The value compared with the partition key in `pk = :v`, in either order and with `#names`. */
function queriedKey(input: JsonInput, partitionKey: string | undefined): string[] {
  const names = (input.ExpressionAttributeNames ?? {}) as Record<string, string>;
  const values = (input.ExpressionAttributeValues ?? {}) as AttributeMap;
  const equalities = String(input.KeyConditionExpression ?? '').matchAll(/([#:\w.-]+)\s*=\s*([#:\w.-]+)/g);
  for (const [, left = '', right = ''] of equalities) {
    const [name, value] = left.startsWith(':') ? [right, left] : [left, right];
    if ((names[name] ?? name) === partitionKey) return Object.values(values[value] ?? {}).map(String);
  }
  return [];
}

const EXPRESSION_WORDS = new Set(
  (
    'and or not between in set remove add delete attribute_exists attribute_not_exists attribute_type begins_with ' +
    'contains size if_not_exists list_append'
  ).split(' '),
);

/** Top-level attributes that the expressions read or write. */
function mentionedAttributes(input: JsonInput): string[] {
  const names = (input.ExpressionAttributeNames ?? {}) as Record<string, string>;
  return EXPRESSIONS.flatMap((expression) => {
    // A path's further parts (.b, [0]) belong to its first; :values are no attributes.
    const text = String(input[expression] ?? '').replace(/\[\d+\]|\.\s*[#\w]+/g, '');
    const words = text.match(/(?<![:\w])#?[A-Za-z_#][\w-]*/g) ?? [];
    return words.filter((word) => !EXPRESSION_WORDS.has(word.toLowerCase())).map((word) => names[word] ?? word);
  });
}
