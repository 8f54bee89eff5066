import {
  type CancellationReason,
  type DynamoDBClient,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { Item } from './dynamo-items.ts';
import type { Key } from './dynamo-keys.ts';

/** Two transactions that touch one row cancel each other; a few jittered tries let both through. */
const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_BACKOFF_MS = 25;
const PASSING_REASONS = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

export interface Pause {
  random(): number;
  sleep(ms: number): Promise<void>;
}

export interface Condition {
  expression: string;
  values?: Record<string, unknown>;
}

/** Every attribute that a condition names; some of these words DynamoDB keeps for itself. */
const NAMES: Record<string, string> = {
  '#pk': 'pk',
  '#seq': 'seq',
  '#leaseVersion': 'leaseVersion',
  '#outcome': 'outcome',
  '#runId': 'runId',
  '#stepIndex': 'stepIndex',
  '#revision': 'revision',
  '#status': 'status',
  '#attempts': 'attempts',
  '#expiresAt': 'expiresAt',
  '#holder': 'holder',
  '#running': 'running',
  '#starts': 'starts',
};

export function put(table: string, item: Item, condition?: Condition): TransactWriteItem {
  return { Put: { TableName: table, Item: item, ...(condition && conditionFields(condition)) } };
}

export function remove(table: string, key: Key, condition?: Condition): TransactWriteItem {
  return { Delete: { TableName: table, Key: marshall(key), ...(condition && conditionFields(condition)) } };
}

/** Adds to counters of a row, on condition that there is room; the row comes into being with the first. */
export function add(
  table: string,
  key: Key,
  amounts: Record<string, number>,
  condition?: Condition,
): TransactWriteItem {
  const fields = condition && conditionFields(condition);
  const names = Object.keys(amounts);
  return {
    Update: {
      TableName: table,
      Key: marshall(key),
      ...fields,
      UpdateExpression: `ADD ${names.map((_, index) => `#n${index} :n${index}`).join(', ')}`,
      ExpressionAttributeNames: {
        ...fields?.ExpressionAttributeNames,
        ...Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
      },
      ExpressionAttributeValues: {
        ...fields?.ExpressionAttributeValues,
        ...marshall(Object.fromEntries(names.map((name, index) => [`:n${index}`, amounts[name]]))),
      },
    },
  };
}

export function conditionFields({ expression, values }: Condition) {
  const used = Object.entries(NAMES).filter(([name]) => new RegExp(`${name}\\b`).test(expression));
  return {
    ConditionExpression: expression,
    ExpressionAttributeNames: Object.fromEntries(used),
    ...(values && { ExpressionAttributeValues: marshall(values) }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}

/** Applies all writes or none. Returns undefined when applied, else why each item refused, in order. */
export async function transact(
  client: DynamoDBClient,
  writes: TransactWriteItem[],
  pause: Pause,
): Promise<CancellationReason[] | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.send(new TransactWriteItemsCommand({ TransactItems: writes }));
      return undefined;
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw error;
      const reasons = error.CancellationReasons ?? [];
      if (reasons.some(isRefusal)) return reasons;
      if (attempt === CONFLICT_ATTEMPTS_MAX || !reasons.some(isPassing)) throw error;
      await pause.sleep(pause.random() * CONFLICT_BACKOFF_MS * 2 ** attempt);
    }
  }
}

export function isRefusal(reason: CancellationReason | undefined): boolean {
  return reason?.Code === 'ConditionalCheckFailed';
}

function isPassing(reason: CancellationReason): boolean {
  return PASSING_REASONS.has(reason.Code ?? '');
}
