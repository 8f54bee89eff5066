import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { OutboxEntry } from '../../outbox/outbox.ts';
import { type Approval, isOpen } from '../approval.ts';
import { sha256Hex } from '../canonical-json.ts';
import { shardOf } from '../caps.ts';
import { CountersignError } from '../errors.ts';
import type { IdempotencyRecord } from '../idempotency.ts';
import type { Receipt } from '../receipt.ts';
import { isTerminal, type Run, type Trigger } from '../run.ts';
import { DUE_SHARDS } from '../run-store.ts';
import * as keys from './dynamo-keys.ts';

/**
 * A row: its key, the document as JSON text, and beside it only what conditions, indexes and TTL need. Documents carry
 * what targets and workflows made, and JSON holds what DynamoDB's own types do not: long numbers, deep nesting, order.
 */
export type Item = Record<string, AttributeValue>;

/** What DynamoDB takes of one row. */
export const ROW_MAX_BYTES = 400 * 1024;
/** A number takes up to this in a row. */
const NUMBER_MAX_BYTES = 21;
/** Smaller documents stay text that people can read in the console; larger ones are mostly repetition. */
const TEXT_MAX_BYTES = 4 * 1024;
/** The window of 4 MB reaches back to every earlier copy: rows of approvals have the same values several times. */
const COMPRESSION = { params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 22 } };

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

/** Throws `ROW_TOO_LARGE` for what no row can hold, even compressed. */
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

/** As DynamoDB counts them, or a few more: names and values, numbers at their largest. */
export function itemBytes(item: Item): number {
  const bytes = ({ S, B }: AttributeValue) =>
    S === undefined ? (B?.length ?? NUMBER_MAX_BYTES) : Buffer.byteLength(S);
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + bytes(value), 0);
}

export function tooLarge(what: string, bytes: number, maxBytes: number): CountersignError {
  const kilobytes = (count: number) => Math.ceil(count / 1024);
  return new CountersignError(
    'ROW_TOO_LARGE',
    `${what} would take ${kilobytes(bytes)} KB, and ${kilobytes(maxBytes)} KB can be kept; write or send less at once`,
  );
}

/** The attributes that put a row into an index. */
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

/** One trigger for each run that it starts: the same text, compressed once. */
export function triggerItems(runs: readonly { run: Run }[], trigger: Trigger): Item[] {
  const [first, ...rest] = runs.map(({ run }) => keys.triggerKey(run.tenant, run.runId));
  if (!first) return [];
  const item = toItem(first, trigger);
  return [item, ...rest.map(({ pk }) => ({ ...item, pk: { S: pk } }))];
}

/** Of a document as it is stored: the same one again has the same hash, however the row keeps it. */
export const docHash = (doc: object): string => sha256Hex(JSON.stringify(doc));

export function receiptItem(receipt: Receipt): Item {
  return toItem(keys.receiptKey(receipt.tenant, receipt.key), receipt, { docHash: docHash(receipt) });
}

export function idempotencyItem(record: IdempotencyRecord): Item {
  return toItem(keys.idempotencyKey(record.tenant, record.key), record, {
    [keys.TTL_ATTRIBUTE]: Math.ceil(Date.parse(record.expiresAt) / 1000),
  });
}

/** One that failed for good is not due. */
export function outboxItem(entry: OutboxEntry): Item {
  const runId = keys.runOfOutboxEntry(entry.id);
  return toItem(keys.outboxKey(entry.id), entry, entry.failed ? {} : dueAt(runId, entry.dueAt));
}

/** An entry as it is stored, which may be anything; its id is that of its key. */
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
  return toItem(
    keys.approvalKey(tenant, runId, approvalId),
    approval,
    isOpen(approval) ? inIndex(keys.INDEXES.pendingApprovals, keys.tenantPartition(tenant), requestedAt) : {},
  );
}
