import { ACCOUNT, AwsError, REGION } from '../aws/aws.ts';
import { tablesOf } from '../dynamodb/tables.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import type { ConditionContext } from './conditions.ts';

/** One action that IAM must allow before a call is executed. A transaction needs one for each of its items. */
export interface AccessCheck {
  action: string;
  /** Several: one allowed resource is enough. */
  resource: string | string[];
  context?: ConditionContext;
}

type JsonInput = Record<string, unknown>;

/** The actions that a call needs, by AWS's documentation of each service. */
export function accessChecks(
  service: string,
  operation: string,
  input: JsonInput,
  stack: ResolvedStack,
): AccessCheck[] {
  switch (service) {
    case 'dynamodb':
      return dynamoDbChecks(operation, input, stack);
    case 'sqs':
      return [sqsCheck(operation, input)];
    case 'states':
      return [statesCheck(operation, input, stack)];
    case 'secretsmanager':
      return [secretsManagerCheck(operation, input, stack)];
    case 'kms':
      return [kmsCheck(operation, input, stack)];
    default:
      return [{ action: `${service}:${operation}`, resource: '*' }];
  }
}

type Key = Record<string, Record<string, unknown>>;

const TRANSACTION_ACTIONS: Record<string, string> = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
};
/** Operations on one table whose keys are checked. Scan names no key. */
const TABLE_OPERATIONS = ['GetItem', 'PutItem', 'UpdateItem', 'DeleteItem', 'ConditionCheckItem', 'Query', 'Scan'];

/** An operation whose keys are not checked here would pass any condition on leading keys, so it is refused. */
function dynamoDbChecks(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck[] {
  if (operation === 'TransactWriteItems') {
    const items = (input.TransactItems ?? []) as Record<string, JsonInput>[];
    return items
      .flatMap(Object.entries)
      .map(([kind, item]) => tableCheck(TRANSACTION_ACTIONS[kind] ?? kind, item as JsonInput, stack));
  }
  if (operation === 'BatchGetItem') {
    const requests = (input.RequestItems ?? {}) as Record<string, { Keys?: Key[] }>;
    return Object.entries(requests).map(([tableName, { Keys = [] }]) => {
      const table = findTable(tableName, stack);
      const leading = new Set(Keys.flatMap((key) => keyValue(key, partitionKeyName(table))));
      return check('dynamodb:BatchGetItem', tableArn(tableName, table), [...leading]);
    });
  }
  return [tableCheck(operation, input, stack)];
}

function tableCheck(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck {
  if (!TABLE_OPERATIONS.includes(operation)) {
    throw new AwsError('UnknownOperationException', `The local DynamoDB does not support ${operation}.`);
  }
  const tableName = String(input.TableName);
  const table = findTable(tableName, stack);
  const index = typeof input.IndexName === 'string' ? input.IndexName : undefined;
  const partitionKey = partitionKeyName(table, index);
  const key = (input.Key ?? input.Item ?? {}) as Key;
  const leading = operation === 'Query' ? queriedKey(input, partitionKey) : keyValue(key, partitionKey);
  const arn = tableArn(tableName, table);
  return check(`dynamodb:${operation}`, index ? `${arn}/index/${index}` : arn, leading);
}

function check(action: string, resource: string, leadingKeys: string[]): AccessCheck {
  return { action, resource, context: { 'dynamodb:LeadingKeys': leadingKeys } };
}

function findTable(name: string, stack: ResolvedStack): ResolvedResource | undefined {
  return tablesOf(stack).find((table) => table.ref === name);
}

function tableArn(name: string, table: ResolvedResource | undefined): string {
  return table?.arn ?? `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${name}`;
}

function partitionKeyName(table: ResolvedResource | undefined, index?: string): string | undefined {
  const { GlobalSecondaryIndexes, KeySchema } = (table?.properties ?? {}) as {
    KeySchema?: { AttributeName: string; KeyType: string }[];
    GlobalSecondaryIndexes?: { IndexName: string; KeySchema: { AttributeName: string; KeyType: string }[] }[];
  };
  const indexKeys = GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === index)?.KeySchema;
  return (indexKeys ?? KeySchema)?.find(({ KeyType }) => KeyType === 'HASH')?.AttributeName;
}

function keyValue(item: Key, partitionKey: string | undefined): string[] {
  const value = partitionKey === undefined ? undefined : item[partitionKey];
  return value === undefined ? [] : Object.values(value).map(String);
}

/** The value that `pk = :v` compares with the partition key, in either order and with `#names`. */
function queriedKey(input: JsonInput, partitionKey: string | undefined): string[] {
  const names = (input.ExpressionAttributeNames ?? {}) as Record<string, string>;
  const values = (input.ExpressionAttributeValues ?? {}) as Key;
  const equalities = String(input.KeyConditionExpression ?? '').matchAll(/([#:\w.-]+)\s*=\s*([#:\w.-]+)/g);
  for (const [, left = '', right = ''] of equalities) {
    const [name, value] = left.startsWith(':') ? [right, left] : [left, right];
    if ((names[name] ?? name) === partitionKey) return Object.values(values[value] ?? {}).map(String);
  }
  return [];
}

/** The batch operations use the actions of the single operations. */
function sqsCheck(operation: string, { QueueUrl }: JsonInput): AccessCheck {
  const resource = `arn:aws:sqs:${REGION}:${ACCOUNT}:${String(QueueUrl).split('/').at(-1)}`;
  return { action: `sqs:${operation.replace(/Batch$/, '')}`, resource };
}

/** AWS checks SendTaskSuccess on the state machine of the token. Here a grant on any state machine of the stack is enough. */
function statesCheck(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck {
  const machines = stack.ofType('AWS::StepFunctions::StateMachine').map(({ arn }) => arn);
  const resource =
    operation === 'SendTaskSuccess' ? machines : String(input.executionArn ?? input.stateMachineArn ?? '*');
  return { action: `states:${operation}`, resource };
}

function secretsManagerCheck(operation: string, { SecretId }: JsonInput, stack: ResolvedStack): AccessCheck {
  const id = String(SecretId);
  const secret = stack
    .ofType('AWS::SecretsManager::Secret')
    .find(({ arn, properties }) => arn === id || properties.Name === id);
  return { action: `secretsmanager:${operation}`, resource: secret?.arn ?? id };
}

function kmsCheck(operation: string, { KeyId }: JsonInput, stack: ResolvedStack): AccessCheck {
  const id = String(KeyId);
  const key = stack.ofType('AWS::KMS::Key').find(({ arn, ref }) => arn === id || ref === id);
  return { action: `kms:${operation}`, resource: key?.arn ?? id };
}
