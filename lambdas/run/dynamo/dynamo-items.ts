import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { Assignment } from '../../agents/assignment.ts';
import type { OutboxEntry } from '../../outbox/outbox.ts';
import { type Approval, type ClosedApprovalStatus, closedAt, closedListOf, isOpen } from '../approval.ts';
import { sha256Hex } from '../canonical-json.ts';
import type { Commit } from '../commit.ts';
import { CountersignError } from '../errors.ts';
import type { IdempotencyRecord } from '../idempotency.ts';
import type { Receipt } from '../receipt.ts';
import { dueAtOf, isTerminal, type Run, type Trigger } from '../run.ts';
import { isOverdue, listedTitle, needsResolution } from '../run-filter.ts';
import { DUE_SHARDS, dueTimeStep } from '../run-store.ts';
import { shardOf } from '../settings/caps.ts';
import { shortSubject } from '../subject.ts';
import * as keys from './dynamo-keys.ts';
import { isPackedWithDictionary, packWithDictionary, unpackWithDictionary } from './row-dictionary.ts';

/**
 * A row: its key, the document as JSON text, and attributes for conditions, indexes and TTL. JSON can store values that
 * the types of DynamoDB cannot: long numbers, deep nesting, the order of fields.
 */
export type Item = Record<string, AttributeValue>;

/** The limit of DynamoDB for one row. */
export const ROW_MAX_BYTES = 400 * 1024;
/** The largest size of a number in a row. */
const NUMBER_MAX_BYTES = 21;
/** DynamoDB bills writes by the kilobyte. A row that fits into one is stored as readable text, a larger one compressed. */
const TEXT_ROW_MAX_BYTES = 1024;
/** Larger ones have more of their own texts than of those in the dictionary. */
const SMALL_DOCUMENT_MAX_BYTES = 8 * 1024;
/** Larger rows of approvals repeat values; a window of 4 MB finds all copies. */
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
  'announce',
  'waitNumber',
  'expiresAt',
  'holder',
];

/**
 * Compresses a row also if it is small. Versions before the newest dictionary cannot read it, and stop: they do not know that
 * steps are in the rows of commits.
 */
export const PACKED = { packed: true } as const;

/** Throws `ROW_TOO_LARGE` if the compressed row exceeds the limit. */
export function toItem(
  key: keys.Key,
  doc: object,
  { packed = false, ...besides }: Record<string, unknown> & { packed?: boolean } = {},
): Item {
  return itemOf(key, doc, JSON.stringify(doc), packed, besides);
}

/** `text`: the document as JSON. */
function itemOf(key: keys.Key, doc: object, text: string, packed: boolean, besides: Record<string, unknown>): Item {
  keys.assertSortKeys(key.sk);
  const item: Item = { pk: { S: key.pk }, sk: { S: key.sk } };
  for (const name of CONDITIONED) setAttribute(item, name, (doc as Record<string, unknown>)[name]);
  for (const name in besides) setAttribute(item, name, besides[name]);
  const textBytes = Buffer.byteLength(text);
  const otherBytes = itemBytes(item) + 'doc'.length;
  if (packed || otherBytes + textBytes > TEXT_ROW_MAX_BYTES) {
    const isSmall = textBytes <= SMALL_DOCUMENT_MAX_BYTES;
    item.doc = { B: isSmall ? packWithDictionary(text) : brotliCompressSync(text, COMPRESSION) };
  } else {
    item.doc = { S: text };
  }
  const bytes = otherBytes + (item.doc.B?.length ?? textBytes);
  if (bytes > ROW_MAX_BYTES) throw tooLarge(`the row ${key.sk}`, bytes, ROW_MAX_BYTES);
  return item;
}

/** Almost all attributes are texts and counts. */
function setAttribute(item: Item, name: string, value: unknown): void {
  if (typeof value === 'string') item[name] = { S: value };
  else if (Number.isSafeInteger(value)) item[name] = { N: String(value) };
  else if (value !== undefined) Object.assign(item, marshall({ [name]: value }, { removeUndefinedValues: true }));
}

export function docOf<T>({ doc }: Item): T {
  return JSON.parse(doc?.B ? unpacked(doc.B) : (doc?.S ?? 'null'));
}

const unpacked = (bytes: Uint8Array): string =>
  isPackedWithDictionary(bytes) ? unpackWithDictionary(bytes) : brotliDecompressSync(bytes).toString();

export const keyOf = ({ pk, sk }: Item): keys.Key => ({ pk: pk?.S ?? '', sk: sk?.S ?? '' });

/** The size as DynamoDB counts it, or slightly more: numbers count with their largest size. */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const name in item) {
    const { S, B } = item[name] as AttributeValue;
    bytes += Buffer.byteLength(name) + (S === undefined ? (B?.length ?? NUMBER_MAX_BYTES) : Buffer.byteLength(S));
  }
  return bytes;
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

/** The attributes that add the run of a row to a list. */
const inList = ({ index, partition }: keys.RunList, at: string) => inIndex(index, partition, at);

export function runItem(run: Run): Item {
  const { tenant, runId, createdAt, status, assignee } = run;
  const due = dueAtOf(run);
  return toItem(keys.runKey(tenant, runId), run, {
    ...PACKED,
    ...inList(keys.RUN_LISTS.all(tenant), createdAt),
    ...inList(keys.RUN_LISTS.status(tenant, status), createdAt),
    ...(isOverdue(run) && inList(keys.RUN_LISTS.overdue(tenant), createdAt)),
    ...(needsResolution(run) && inList(keys.RUN_LISTS.needsResolution(tenant), createdAt)),
    ...(assignee !== undefined && inList(keys.RUN_LISTS.assignee(tenant, assignee), createdAt)),
    ...(due !== undefined && dueAt(runId, dueTimeStep(due))),
  });
}

/** One row for each run that the trigger starts, compressed once. */
export function triggerItems(runs: readonly { run: Run }[], trigger: Trigger): Item[] {
  const [first, ...rest] = runs.map(({ run }) => run);
  if (!first) return [];
  const item = toItem(keys.triggerKey(first.tenant, first.runId), trigger, listsOfTrigger(first));
  return [
    item,
    ...rest.map((run) => ({
      ...item,
      ...marshall({ ...keys.triggerKey(run.tenant, run.runId), ...listsOfTrigger(run) }),
    })),
  ];
}

const listsOfTrigger = ({ tenant, automation, workflow, subject, createdAt }: Run) => ({
  ...inList(keys.RUN_LISTS.automation(tenant, automation), createdAt),
  ...inList(keys.RUN_LISTS.workflow(tenant, workflow.name), createdAt),
  ...(subject !== undefined && inList(keys.RUN_LISTS.subject(tenant, shortSubject(subject)), createdAt)),
});

/** A commit never changes, so its row adds the run to the lists from which runs are never removed. */
export function commitRow(run: Run, commit: Commit, stored: object): Item {
  const lists = listsOfCommit(run, commit);
  return toItem(keys.commitKey(run.tenant, run.runId, commit.seq), stored, { ...PACKED, ...lists });
}

/**
 * The first commit makes the run known by its id, the one that gives it a title by this, and the one that ends it with an
 * error by the code. The run that rolls back another one has its title from the beginning; its second commit lists it.
 */
function listsOfCommit(run: Run, { seq, events }: Commit): Record<string, string> {
  const { tenant, runId, status, createdAt, enrichment } = run;
  if (seq === 1) return inList(keys.RUN_LISTS.ids(tenant), runId);
  const code = isTerminal(run) ? run.error?.code : undefined;
  const ends = events.some((event) => event.type === 'run.status_changed' && event.to === status);
  const entitles = seq === 2 || events.some(({ type }) => type === 'run.enriched');
  // A row has one sort key for all of its lists.
  const title = entitles && enrichment && keys.titleSortKey(createdAt, listedTitle(enrichment));
  return {
    ...(title && inList(keys.RUN_LISTS.titles(tenant), title)),
    ...(ends && code !== undefined && inList(keys.RUN_LISTS.errorCode(tenant, code), title || createdAt)),
  };
}

/** Independent of how the row stores the document. */
export const docHash = (doc: object): string => sha256Hex(JSON.stringify(doc));

export function receiptItem(receipt: Receipt): Item {
  const text = JSON.stringify(receipt);
  return itemOf(keys.receiptKey(receipt.tenant, receipt.key), receipt, text, false, { docHash: sha256Hex(text) });
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

/** A schedule is due at its next slot. */
export function scheduleItem(state: { tenant: string; name: string; nextSlot?: string }): Item {
  const { tenant, name, nextSlot } = state;
  return toItem(keys.scheduleStateKey(tenant, name), state, nextSlot === undefined ? {} : dueAt(name, nextSlot));
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

export const assignmentItem = (assignment: Assignment): Item =>
  toItem(keys.assignmentKey(assignment.tenant, assignment), assignment);

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
