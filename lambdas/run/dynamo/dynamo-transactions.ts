import {
  type CancellationReason,
  type DynamoDBClient,
  DynamoDBServiceException,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { type Item, itemBytes, tooLarge } from './dynamo-items.ts';
import { assertSortKeys, type Key, TTL_ATTRIBUTE } from './dynamo-keys.ts';

/** Two transactions on one row cancel each other. A few attempts with jitter let both succeed. */
const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_BACKOFF_MS = 25;
const PASSING_REASONS = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

/** The limit of DynamoDB for all rows of one transaction. */
export const TRANSACTION_MAX_BYTES = 4 * 1024 * 1024;

export interface Pause {
  random(): number;
  sleep(ms: number): Promise<void>;
}

export interface Condition {
  expression: string;
  values?: Record<string, unknown>;
}

export function put(table: string, item: Item, condition?: Condition): TransactWriteItem {
  return { Put: { TableName: table, Item: item, ...(condition && conditionFields(condition)) } };
}

export function remove(table: string, key: Key, condition?: Condition): TransactWriteItem {
  assertSortKeys(key.sk);
  return { Delete: { TableName: table, Key: marshall(key), ...(condition && conditionFields(condition)) } };
}

/** A condition of the transaction on a row that it does not change. */
export function check(table: string, key: Key, condition: Condition): TransactWriteItem {
  return { ConditionCheck: { TableName: table, Key: marshall(key), ...conditionFields(condition) } };
}

/** Adds to counters of a row under a condition. Creates the row if needed; it may expire. */
export function add(
  table: string,
  key: Key,
  amounts: Record<string, number>,
  { condition, deleteAfterSeconds }: { condition?: Condition; deleteAfterSeconds?: number } = {},
): TransactWriteItem {
  const fields = condition && conditionFields(condition);
  const names = Object.keys(amounts);
  const expires = deleteAfterSeconds !== undefined;
  return {
    Update: {
      TableName: table,
      Key: marshall(key),
      ...fields,
      UpdateExpression: `${expires ? 'SET #ttl = :ttl ' : ''}ADD ${names.map((_, index) => `#n${index} :n${index}`).join(', ')}`,
      ExpressionAttributeNames: {
        ...fields?.ExpressionAttributeNames,
        ...Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
        ...(expires && { '#ttl': TTL_ATTRIBUTE }),
      },
      ExpressionAttributeValues: {
        ...fields?.ExpressionAttributeValues,
        ...marshall(Object.fromEntries(names.map((name, index) => [`:n${index}`, amounts[name]]))),
        ...(expires && marshall({ ':ttl': deleteAfterSeconds })),
      },
    },
  };
}

/** By expression: there are few, and each is used again and again. */
const NAMES_IN = new Map<string, Record<string, string>>();

/** With `#`, because some of these names are reserved words of DynamoDB. */
function namesIn(expression: string): Record<string, string> {
  const known = NAMES_IN.get(expression);
  if (known) return known;
  const names = Object.fromEntries((expression.match(/#\w+/g) ?? []).map((name) => [name, name.slice(1)]));
  NAMES_IN.set(expression, names);
  return names;
}

export function conditionFields({ expression, values }: Condition) {
  return {
    ConditionExpression: expression,
    ExpressionAttributeNames: namesIn(expression),
    ...(values && { ExpressionAttributeValues: marshall(values) }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}

/** Applies all writes or none. Returns undefined if applied, otherwise the reason for each item, in order. */
export async function transact(
  client: DynamoDBClient,
  writes: TransactWriteItem[],
  pause: Pause,
): Promise<CancellationReason[] | undefined> {
  const bytes = writes.reduce(
    (sum, { Put, Update, Delete }) => sum + itemBytes(Put?.Item ?? Update?.Key ?? Delete?.Key ?? {}),
    0,
  );
  if (bytes > TRANSACTION_MAX_BYTES) throw tooLarge('the transaction', bytes, TRANSACTION_MAX_BYTES);
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

const THROTTLED = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'RequestThrottledException',
]);
const NETWORK = new Set(['ECONNRESET', 'ECONNREFUSED', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']);

/** True if the same request may succeed later: throttling, server error or network error. */
export function isTransient(error: unknown): boolean {
  if (error instanceof DynamoDBServiceException) return error.$fault === 'server' || THROTTLED.has(error.name);
  if (!(error instanceof Error)) return false;
  return error.name === 'TimeoutError' || NETWORK.has((error as Error & { code?: string }).code ?? '');
}
