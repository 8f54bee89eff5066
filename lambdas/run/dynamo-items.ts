import { gunzipSync, gzipSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { Approval } from '../approval/approval.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import * as keys from './dynamo-keys.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import { isTerminal, type Run, type Trigger } from './run.ts';

/** A row: its key, the document as the domain knows it under `doc`, and beside it only what indexes and TTL need. */
export type Item = Record<string, AttributeValue>;

export function toItem(key: keys.Key, doc: object, besides: Record<string, unknown> = {}): Item {
  return marshall({ ...key, doc, ...besides }, { removeUndefinedValues: true, convertClassInstanceToMap: true });
}

export function docOf<T>(item: Item): T {
  return unmarshall(item).doc as T;
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
  const { doc, payloadGzip } = unmarshall(item);
  return { ...doc, payload: JSON.parse(gunzipSync(payloadGzip).toString()) };
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
  const open = approval.status === 'requested' || approval.status === 'notified';
  return toItem(keys.approvalKey(approval.tenant, approval.runId, approval.approvalId), approval, {
    createdAt: approval.requestedAt,
    ...(open && { pendingKey: keys.tenantIndexKey(approval.tenant) }),
  });
}
