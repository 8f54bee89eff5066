import { gunzipSync, gzipSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { type Approval, isOpen } from '../approval/approval.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import * as keys from './dynamo-keys.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import { isTerminal, type Run, type Trigger } from './run.ts';

/**
 * A row: its key, the document as JSON text, and beside it only what conditions, indexes and TTL need. Documents carry
 * what targets and workflows made, and JSON holds what DynamoDB's own types do not: long numbers, deep nesting, order.
 */
export type Item = Record<string, AttributeValue>;

/** Fields of documents that conditions name. */
const CONDITIONED = [
  'seq',
  'leaseVersion',
  'outcome',
  'runId',
  'stepIndex',
  'status',
  'revision',
  'attempts',
  'expiresAt',
  'holder',
];

export function toItem(key: keys.Key, doc: object, besides: Record<string, unknown> = {}): Item {
  const conditioned = Object.entries(doc).filter(([name]) => CONDITIONED.includes(name));
  return marshall(
    { ...key, doc: JSON.stringify(doc), ...Object.fromEntries(conditioned), ...besides },
    { removeUndefinedValues: true },
  );
}

export function docOf<T>(item: Item): T {
  return JSON.parse(item.doc?.S ?? 'null');
}

export function runItem(run: Run): Item {
  const { tenant, runId, createdAt, subject } = run;
  return toItem(keys.runKey(tenant, runId), run, {
    createdAt,
    tenantKey: keys.tenantIndexKey(tenant),
    statusKey: keys.statusIndexKey(tenant, run.status),
    ...(subject !== undefined && { subjectKey: keys.subjectIndexKey(tenant, subject) }),
    ...(!isTerminal(run) &&
      run.dueAt !== undefined && { dueShard: keys.dueIndexKey(keys.shardOf(runId)), dueAt: run.dueAt }),
  });
}

/** The payload is kept compressed: webhooks are wordy, rows are billed by the kilobyte and end at 400 KB. */
export function triggerItem(tenant: string, runId: string, trigger: Trigger): Item {
  const { payload, ...doc } = trigger;
  return toItem(keys.triggerKey(tenant, runId), doc, { payloadGzip: gzipSync(JSON.stringify(payload)) });
}

export function triggerOf(item: Item): Trigger {
  const { payloadGzip } = unmarshall(item);
  return { ...docOf<Omit<Trigger, 'payload'>>(item), payload: JSON.parse(gunzipSync(payloadGzip).toString()) };
}

export function idempotencyItem(record: IdempotencyRecord): Item {
  return toItem(keys.idempotencyKey(record.tenant, record.key), record, {
    [keys.TTL_ATTRIBUTE]: Math.ceil(Date.parse(record.expiresAt) / 1000),
  });
}

export function outboxItem(entry: OutboxEntry): Item {
  return toItem(keys.outboxKey(entry.id), entry, {
    dueShard: keys.dueIndexKey(keys.shardOf(entry.runId)),
    dueAt: entry.dueAt,
  });
}

export function approvalItem(approval: Approval): Item {
  return toItem(keys.approvalKey(approval.tenant, approval.runId, approval.approvalId), approval, {
    createdAt: approval.requestedAt,
    ...(isOpen(approval) && { pendingKey: keys.tenantIndexKey(approval.tenant) }),
  });
}
