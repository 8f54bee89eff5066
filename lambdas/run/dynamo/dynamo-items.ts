import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { OutboxEntry } from '../../outbox/outbox.ts';
import { type Approval, type ClosedApprovalStatus, closedAt, closedListOf, isOpen } from '../approval.ts';
import { sha256Hex } from '../canonical-json.ts';
import { shardOf } from '../caps.ts';
import { CountersignError } from '../errors.ts';
import type { IdempotencyRecord } from '../idempotency.ts';
import type { Receipt } from '../receipt.ts';
import { isTerminal, type Run, type Trigger } from '../run.ts';
import { DUE_SHARDS } from '../run-store.ts';
import * as keys from './dynamo-keys.ts';

/**
 * A row: its key, the document as JSON text, and attributes for conditions, indexes and TTL. JSON can store values that
 * the types of DynamoDB cannot: long numbers, deep nesting, the order of fields.
 */
export type Item = Record<string, AttributeValue>;

/** The limit of DynamoDB for one row. */
export const ROW_MAX_BYTES = 400 * 1024;
/** The largest size of a number in a row. */
const NUMBER_MAX_BYTES = 21;
/** Smaller documents are stored as readable text, larger ones compressed. */
const TEXT_MAX_BYTES = 4 * 1024;
/** Rows of approvals repeat values; a window of 4 MB finds all copies. */
const COMPRESSION = { params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 22 } };

/** Fields of documents that conditions use. */
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

/** Throws `ROW_TOO_LARGE` if the compressed row exceeds the limit. */
export function toItem(key: keys.Key, doc: object, besides: Record<string, unknown> = {}): Item {
  keys.assertSortKeys(key.sk);
  const text = JSON.stringify(doc);
  const conditioned = Object.entries(doc).filter(([name]) => CONDITIONED.includes(name));
  const item = marshall(
    {
      ...key,
      doc: Buffer.byteLength(text) <= TEXT_MAX_BYTES ? text : brotliCompressSync(text, COMPRESSION),
      ...Object.fromEntries(conditioned),
      ...besides,
    },
    { removeUndefinedValues: true },
  );
  const bytes = itemBytes(item);
  if (bytes > ROW_MAX_BYTES) throw tooLarge(`the row ${key.sk}`, bytes, ROW_MAX_BYTES);
  return item;
}

export function docOf<T>({ doc }: Item): T {
  return JSON.parse(doc?.B ? brotliDecompressSync(doc.B).toString() : (doc?.S ?? 'null'));
}

export const keyOf = ({ pk, sk }: Item): keys.Key => ({ pk: pk?.S ?? '', sk: sk?.S ?? '' });

/** The size as DynamoDB counts it, or slightly more: numbers count with their largest size. */
export function itemBytes(item: Item): number {
  const bytes = ({ S, B }: AttributeValue) =>
    S === undefined ? (B?.length ?? NUMBER_MAX_BYTES) : Buffer.byteLength(S);
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + bytes(value), 0);
}

export function tooLarge(what: string, bytes: number, maxBytes: number): CountersignError {
  const kilobytes = (count: number) => Math.ceil(count / 1024);
  return new CountersignError(
    'ROW_TOO_LARGE',
    `${what} is ${kilobytes(bytes)} KB; the limit is ${kilobytes(maxBytes)} KB. Write or send less at once`,
  );
}

/** The attributes that add a row to an index. */
const inIndex = ({ partition, sort }: keys.Index, value: string, at: string) => ({ [partition]: value, [sort]: at });

const dueAt = (runId: string, at: string) =>
  inIndex(keys.INDEXES.due, keys.dueIndexKey(shardOf(runId, DUE_SHARDS)), at);

export function runItem(run: Run): Item {
  const { tenant, runId, createdAt, status } = run;
  return toItem(keys.runKey(tenant, runId), run, {
    ...inIndex(keys.INDEXES.byTenant, keys.tenantPartition(tenant), createdAt),
    ...inIndex(keys.INDEXES.byStatus, keys.statusIndexKey(tenant, status), createdAt),
    ...(!isTerminal(run) && run.dueAt !== undefined && dueAt(runId, run.dueAt)),
  });
}

/** One row for each run that the trigger starts, compressed once. */
export function triggerItems(runs: readonly { run: Run }[], trigger: Trigger): Item[] {
  const [first, ...rest] = runs.map(({ run }) => keys.triggerKey(run.tenant, run.runId));
  if (!first) return [];
  const item = toItem(first, trigger);
  return [item, ...rest.map(({ pk }) => ({ ...item, pk: { S: pk } }))];
}

/** Independent of how the row stores the document. */
export const docHash = (doc: object): string => sha256Hex(JSON.stringify(doc));

export function receiptItem(receipt: Receipt): Item {
  return toItem(keys.receiptKey(receipt.tenant, receipt.key), receipt, { docHash: docHash(receipt) });
}

export function idempotencyItem(record: IdempotencyRecord): Item {
  return toItem(keys.idempotencyKey(record.tenant, record.key), record, {
    [keys.TTL_ATTRIBUTE]: Math.ceil(Date.parse(record.expiresAt) / 1000),
  });
}

/** A failed entry is not due. */
export function outboxItem(entry: OutboxEntry): Item {
  const runId = keys.runOfOutboxEntry(entry.id);
  return toItem(keys.outboxKey(entry.id), entry, entry.failed ? {} : dueAt(runId, entry.dueAt));
}

/** Reads an entry that may be malformed. Its id is in its key. */
export function outboxEntryOf(item: Item): OutboxEntry {
  const { sk: id } = keyOf(item);
  try {
    return { ...docOf<OutboxEntry>(item), id };
  } catch {
    return { unreadable: item.doc?.S, id } as unknown as OutboxEntry;
  }
}

export function approvalItem(approval: Approval): Item {
  const { tenant, runId, approvalId, requestedAt } = approval;
  const [partition, at] = isOpen(approval)
    ? [keys.tenantPartition(tenant), requestedAt]
    : [keys.closedApprovalsIndexKey(tenant, closedListOf(approval.status as ClosedApprovalStatus)), closedAt(approval)];
  return toItem(
    keys.approvalKey(tenant, runId, approvalId),
    approval,
    inIndex(keys.INDEXES.pendingApprovals, partition, at),
  );
}
