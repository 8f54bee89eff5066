import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { Clock } from '../../entry/ports.ts';
import { isStuck, type OutboxEntry } from '../../outbox/outbox.ts';
import { type Approval, type ClosedApprovalList, closedAt, isOpen, runIdOf } from '../approval.ts';
import type { Commit } from '../commit.ts';
import type { IdempotencyRecord } from '../idempotency.ts';
import type { Receipt } from '../receipt.ts';
import { lostTrigger, type Run, type Trigger } from '../run.ts';
import { listedField, matchesFilter, needsMoreThanItsList, type RunFilter } from '../run-filter.ts';
import {
  type DueItem,
  type EvidenceRecord,
  EXAMINED_MAX,
  type LoadedRun,
  OUTBOX_SHARDS,
  type Page,
  type Rerun,
  type RunCount,
  type RunPage,
  type RunReads,
  type RunRow,
  type SweepRecord,
  TITLES_EXAMINED_MAX,
  type WaitingLine,
} from '../run-store.ts';
import type { Step } from '../step.ts';
import { runningByWorkspace } from './dynamo-caps.ts';
import { docOf, type Item, keyOf, outboxEntryOf } from './dynamo-items.ts';
import * as keys from './dynamo-keys.ts';
import { DynamoRows, under, wholePartition } from './dynamo-rows.ts';
import { listFor, placeOf, rangeOf, startAfter, timeOf, titleHas } from './dynamo-run-lists.ts';
import { commitOf, type StoredCommit, StoredRun } from './dynamo-stored-run.ts';
import type { Pause } from './dynamo-transactions.ts';

/** How often a run is read again because a commit was made meanwhile. */
const READ_ATTEMPTS_MAX = 10;
/** They take about as much as one row of a usual step and the run. */
const NEWEST_COMMITS = 4;
/** A response counts 1 MB of keys, about 4,000. */
const COUNTED_PAGES_MAX = 5;

export class DynamoRunReads implements RunReads {
  protected readonly rows: DynamoRows;
  protected readonly pause: Pause;
  readonly #clock: Clock;

  constructor(client: DynamoDBClient, table: string, pause: Pause, clock: Clock) {
    this.rows = new DynamoRows(client, table);
    this.pause = pause;
    this.#clock = clock;
  }

  /** DynamoDB deletes expired rows within days, in any order. Until then, reads skip them. */
  #unexpired(items: Item[]): Item[] {
    const now = this.#clock.now() / 1000;
    return items.filter((item) => Number(item[keys.TTL_ATTRIBUTE]?.N ?? Number.POSITIVE_INFINITY) > now);
  }

  async #pointedAt<T>(pointers: Item[]): Promise<T[]> {
    const items = await this.rows.batchGetItems(pointers.map(keyOf), this.pause);
    return this.#unexpired(items).map((item) => docOf<T>(item));
  }

  async load(tenant: string, runId: string): Promise<LoadedRun | undefined> {
    const partition = wholePartition(keys.runPartition(tenant, runId));
    for (let attempt = 1; attempt <= READ_ATTEMPTS_MAX; attempt += 1) {
      const items = this.#unexpired(await this.rows.range({ ...partition, from: keys.COMMIT_PREFIX }));
      const stored = new StoredRun();
      for (const item of items) stored.take(item);
      if (!stored.isTorn) return assemble(stored, items);
    }
    throw new Error(`${runId} was changed each time while it was read; try again`);
  }

  async runAndStep(tenant: string, runId: string, index: number): Promise<{ run: Run; step?: Step } | undefined> {
    const stored = new StoredRun();
    // Before the row of the run, which is not older then.
    for await (const commit of this.#newestCommits(tenant, runId)) {
      stored.takeCommit(commit);
      if (hasStep(commit, index)) break;
    }
    const rows = [keys.runKey, keys.stepKey, keys.leaseKey].map((key) => key(tenant, runId, index));
    for (const item of this.#unexpired(await this.rows.batchGetItems(rows, this.pause))) stored.take(item);
    const [run, step] = [stored.run, stored.step(index)];
    return run && { run, ...(step && { step }) };
  }

  /** Some at first: a step in flight is usually in one of the last commits. */
  async *#newestCommits(tenant: string, runId: string): AsyncGenerator<StoredCommit> {
    const range = under(keys.runPartition(tenant, runId), keys.COMMIT_PREFIX);
    const newestFirst = true;
    const first = await this.rows.range(range, { limit: NEWEST_COMMITS, newestFirst });
    for (const item of first) yield docOf(item);
    const last = first.at(-1);
    if (!last || first.length < NEWEST_COMMITS) return;
    const earlier = keys.commitKey(tenant, runId, docOf<Commit>(last).seq - 1).sk;
    for await (const items of this.rows.pages({ ...range, to: earlier }, { newestFirst })) {
      for (const item of items) yield docOf(item);
    }
  }

  async *everyRow(tenant: string, runId: string): AsyncGenerator<RunRow> {
    const stored = new StoredRun();
    for await (const items of this.rows.pages(wholePartition(keys.runPartition(tenant, runId)))) {
      for (const item of items) yield* rowsIn(item, stored);
    }
    yield* stepRows(stored, Number.POSITIVE_INFINITY);
  }

  async listRuns(tenant: string, query: RunFilter & { limit: number; after?: string }): Promise<RunPage> {
    const { limit, after, ...filter } = query;
    const { index, partition } = listFor(tenant, filter);
    const readsTitles = listedField(filter) === 'text';
    const readMax = needsMoreThanItsList(filter) ? EXAMINED_MAX : limit;
    const { items, lastKey } = await this.rows.indexPage(index, partition, {
      ...rangeOf(filter),
      limit: readsTitles ? TITLES_EXAMINED_MAX : readMax,
      newestFirst: true,
      after: after === undefined ? undefined : startAfter(after, tenant, index, partition),
    });
    const candidates = readsTitles ? items.filter(titleHas(filter.text ?? '', index)) : items;
    const read = candidates.slice(0, readMax);
    const found = await this.#pointedAt<Run>(read.map(({ pk }) => ({ pk, sk: { S: keys.RUN_SORT_KEY } }) as Item));
    const byPartition = new Map(found.map((run) => [keys.runPartition(tenant, run.runId), run]));
    const matching = read.flatMap((item) => {
      const run = byPartition.get(keyOf(item).pk);
      return run && matchesFilter(run, filter) ? [{ run, place: placeOf(item, index) }] : [];
    });
    const shown = matching.slice(0, limit);
    const lastRead = read.length < candidates.length ? read.at(-1) : lastKey;
    const next = shown.length < matching.length ? shown.at(-1)?.place : lastRead && placeOf(lastRead, index);
    const leavesOut = readsTitles || needsMoreThanItsList(filter);
    return {
      items: shown.map(({ run }) => run),
      places: new Map(shown.map(({ run, place }) => [run.runId, place])),
      ...(next !== undefined && { next, ...(leavesOut && { searchedBackTo: timeOf(next) }) }),
    };
  }

  countRuns(tenant: string, filters: readonly RunFilter[], max: number): Promise<RunCount[]> {
    return Promise.all(
      filters.map(async (filter) => {
        const { index, partition } = listFor(tenant, filter);
        const { items } = await this.rows.indexPage(index, partition, { ...rangeOf(filter), limit: max + 1 });
        const [first] = items;
        const oldest = first && keys.parseRunPartition(keyOf(first).pk);
        return {
          count: Math.min(items.length, max),
          ...(items.length > max && { atLeast: true as const }),
          ...(oldest && { oldest: { runId: oldest.runId, createdAt: timeOf(first[index.sort]?.S ?? '') } }),
        };
      }),
    );
  }

  async someRuns(tenant: string, runIds: readonly string[]): Promise<Run[]> {
    const wanted = [...new Set(runIds)].map((runId) => keys.runKey(tenant, runId));
    return this.#unexpired(await this.rows.batchGetItems(wanted, this.pause)).map((item) => docOf<Run>(item));
  }

  async runIdsStartingWith(tenant: string, prefix: string, limit: number): Promise<string[]> {
    const { index, partition } = keys.RUN_LISTS.ids(tenant);
    const { items } = await this.rows.indexPage(index, partition, {
      limit,
      from: prefix,
      upTo: `${prefix}${keys.LAST}`,
    });
    return items.map((item) => item[index.sort]?.S ?? '');
  }

  async listCommits(tenant: string, runId: string, { after, limit }: { after: number; limit: number }) {
    const { pk, sk: from } = keys.commitKey(tenant, runId, after + 1);
    const items = await this.rows.range({ ...under(pk, keys.COMMIT_PREFIX), from }, { limit });
    return this.#unexpired(items).map(commitOf);
  }

  async waitingLine(tenant: string, limit: number, shards: number): Promise<WaitingLine> {
    const queued = keys.statusIndexKey(tenant, 'queued');
    const { items } = await this.rows.indexPage(keys.INDEXES.byStatus, queued, { limit });
    const [runs, counters] = await Promise.all([
      this.#pointedAt<Run>(items),
      this.rows.batchGetItems(
        Array.from({ length: shards }, (_, shard) => keys.slotCounterKey(tenant, shard)),
        this.pause,
      ),
    ]);
    const waiting = runs.filter(({ status }) => status === 'queued');
    return {
      waiting: waiting.map(({ runId, workspace, createdAt }) => ({ runId, workspace, createdAt })),
      running: runningByWorkspace(counters),
    };
  }

  async receipts(tenant: string, receiptKeys: string[]): Promise<Receipt[]> {
    const found = await this.rows.batchGet<Receipt & { restedOnBy?: string }>(
      [...new Set(receiptKeys)].map((key) => keys.receiptKey(tenant, key)),
      this.pause,
    );
    // Receipts of earlier versions name the run that reuses their write `restedOnBy`.
    return found.map(({ restedOnBy, ...receipt }) =>
      restedOnBy === undefined ? receipt : ({ ...receipt, reusedBy: restedOnBy } as Receipt),
    );
  }

  async approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined> {
    const item = await this.rows.getItem(keys.approvalKey(tenant, runId, approvalId));
    return this.#unexpired(item ? [item] : []).map((found) => docOf<Approval>(found))[0];
  }

  async approvals(tenant: string, approvalIds: readonly string[]): Promise<Approval[]> {
    const wanted = [...new Set(approvalIds)].map((id) => keys.approvalKey(tenant, runIdOf(id), id));
    return this.#unexpired(await this.rows.batchGetItems(wanted, this.pause)).map((item) => docOf<Approval>(item));
  }

  async pendingApprovals(tenant: string, place: { limit: number; after?: string }): Promise<Page<Approval>> {
    const { items, ...next } = await this.#approvalPage(tenant, keys.tenantPartition(tenant), place);
    const oldestFirst = items.filter(isOpen).sort((a, b) => (a.requestedAt < b.requestedAt ? -1 : 1));
    return { items: oldestFirst, ...next };
  }

  async closedApprovals(
    tenant: string,
    { list, ...place }: { list: ClosedApprovalList; limit: number; after?: string },
  ): Promise<Page<Approval>> {
    const partition = keys.closedApprovalsIndexKey(tenant, list);
    const { items, ...next } = await this.#approvalPage(tenant, partition, { ...place, newestFirst: true });
    return { items: items.sort((a, b) => (closedAt(a) < closedAt(b) ? 1 : -1)), ...next };
  }

  async #approvalPage(
    tenant: string,
    partition: string,
    { after, ...place }: { limit: number; after?: string; newestFirst?: boolean },
  ): Promise<Page<Approval>> {
    const index = keys.INDEXES.pendingApprovals;
    const start = (approvalId: string) => ({
      ...keys.approvalKey(tenant, runIdOf(approvalId), approvalId),
      [index.partition]: partition,
    });
    const { items, lastKey } = await this.rows.indexPage(index, partition, {
      ...place,
      after: placeAfter(after, start),
    });
    const found = await this.#pointedAt<Approval>(items);
    return { items: found, ...next(lastKey, ({ sk }) => sk.slice(keys.APPROVAL_PREFIX.length)) };
  }

  countPendingApprovals(tenant: string): Promise<number> {
    return this.rows.indexCount(keys.INDEXES.pendingApprovals, keys.tenantPartition(tenant), COUNTED_PAGES_MAX);
  }

  async taskToken(tenant: string, runId: string, approvalId: string): Promise<string | undefined> {
    const row = await this.rows.get<{ taskToken: string }>(keys.taskTokenKey(tenant, runId, approvalId));
    return row?.taskToken;
  }

  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined> {
    return this.rows.get(keys.evidenceKey(tenant, runId));
  }

  async reruns(tenant: string, runId: string, limit: number): Promise<Rerun[]> {
    const links = under(keys.runPartition(tenant, runId), keys.RERUN_PREFIX);
    const items = await this.rows.range(links, { limit, newestFirst: true });
    return this.#unexpired(items).map((item) => docOf<Rerun>(item));
  }

  idempotencyRecord(tenant: string, key: string): Promise<IdempotencyRecord | undefined> {
    return this.rows.get(keys.idempotencyKey(tenant, key));
  }

  async addenda(tenant: string, runId: string, { after, limit }: { after: number; limit: number }) {
    const { pk, sk: from } = keys.addendumKey(tenant, runId, after + 1);
    const items = await this.rows.range({ ...under(pk, keys.ADDENDUM_PREFIX), from }, { limit });
    return items.map((item) => ({
      seq: Number(keyOf(item).sk.slice(keys.ADDENDUM_PREFIX.length)),
      ...docOf<EvidenceRecord>(item),
    }));
  }

  async due(shard: number, now: string, { limit, after }: { limit: number; after?: string }): Promise<Page<DueItem>> {
    const { items, lastKey } = await this.rows.indexPage(keys.INDEXES.due, keys.dueIndexKey(shard), {
      limit,
      upTo: keys.dueSortKeysUpTo(now),
      ...(after !== undefined && { after: marshall(JSON.parse(after)) }),
    });
    return {
      items: items.flatMap((item) => dueItem(item) ?? []),
      ...(lastKey && { next: JSON.stringify(unmarshall(lastKey)) }),
    };
  }

  async outboxEntries(entryIds: string[]): Promise<OutboxEntry[]> {
    return (await this.rows.batchGetItems(entryIds.map(keys.outboxKey), this.pause)).map(outboxEntryOf);
  }

  async openOutbox(tenant: string, limit: number): Promise<{ entries: OutboxEntry[]; complete: boolean }> {
    const perShard = Math.ceil(limit / OUTBOX_SHARDS);
    const shards = await Promise.all(
      Array.from({ length: OUTBOX_SHARDS }, (_, shard) =>
        this.rows.range(under(keys.outboxPartition(shard), keys.outboxPrefix(tenant)), { limit: perShard }),
      ),
    );
    return {
      entries: shards.flat().map(outboxEntryOf),
      complete: shards.every((items) => items.length < perShard),
    };
  }

  lastSweep(tenant: string): Promise<SweepRecord | undefined> {
    return this.rows.get(keys.sweepKey(tenant));
  }

  async stuckOutbox(tenant: string, limit: number): Promise<OutboxEntry[]> {
    const stuck: OutboxEntry[] = [];
    for (let shard = 0; shard < OUTBOX_SHARDS; shard += 1) {
      const entries = under(keys.outboxPartition(shard), keys.outboxPrefix(tenant));
      for await (const items of this.rows.pages(entries)) {
        stuck.push(...items.map(outboxEntryOf).filter(isStuck));
        if (stuck.length >= limit) return stuck.slice(0, limit);
      }
    }
    return stuck;
  }
}

function dueItem(item: Item): DueItem | undefined {
  const { pk, sk } = keyOf(item);
  const { dueAt, sweeps } = keys.parseDueSortKey(item[keys.INDEXES.due.sort]?.S ?? '');
  const run = keys.parseRunPartition(pk);
  if (run) return { kind: 'run', ...run, dueAt, sweeps };
  const schedule = keys.parseSchedulePartition(pk);
  if (schedule) return { kind: 'schedule', ...schedule, dueAt };
  return keys.isOutboxKey({ pk, sk })
    ? { kind: 'outbox', tenant: keys.tenantOfOutboxEntry(sk), entryId: sk, dueAt }
    : undefined;
}

function assemble({ run, steps }: StoredRun, items: Item[]): LoadedRun | undefined {
  const trigger = items.find(({ sk }) => sk?.S === keys.TRIGGER_SORT_KEY);
  if (!run) return undefined;
  return trigger
    ? { run, trigger: docOf<Trigger>(trigger), steps }
    : { run, trigger: lostTrigger(run), triggerIsLost: true, steps };
}

const hasStep = ({ steps = [], stepsInRows = [] }: StoredCommit, wanted: number): boolean =>
  steps.some(({ index }) => index === wanted) || stepsInRows.includes(wanted);

/** The rows of steps come last, so that a large one is returned when it is read. */
function* rowsIn(item: Item, stored: StoredRun): Generator<RunRow> {
  const { sk } = keyOf(item);
  if (sk.startsWith(keys.COMMIT_PREFIX)) {
    yield { kind: 'commit', commit: stored.takeCommit(docOf(item)) };
    return;
  }
  const index = sk.startsWith(keys.STEP_PREFIX) ? keys.indexOfStep(sk) : undefined;
  if (index !== undefined) yield* stepRows(stored, index - 1);
  stored.take(item);
  if (index !== undefined) yield* stepRows(stored, index);
  const row = rowIn(item, stored);
  if (row) yield row;
}

function* stepRows(stored: StoredRun, upTo: number): Generator<RunRow> {
  for (const step of stored.takeOut(upTo)) yield { kind: 'step', step };
}

/** Undefined for records of addenda and rows of leases. */
function rowIn(item: Item, { run }: StoredRun): RunRow | undefined {
  const { sk } = keyOf(item);
  if (sk === keys.RUN_SORT_KEY && run) return { kind: 'run', run };
  if (sk === keys.EVIDENCE_SORT_KEY) return { kind: 'evidence', evidence: docOf(item) };
  if (sk === keys.TRIGGER_SORT_KEY) return { kind: 'trigger', trigger: docOf(item) };
  if (sk.startsWith(keys.APPROVAL_PREFIX)) return { kind: 'approval', approval: docOf(item) };
  if (sk.startsWith(keys.ASSIGNMENT_PREFIX)) return { kind: 'assignment', assignment: docOf(item) };
  return undefined;
}

/** A cursor has the time and id of the last row. Tenant and index come from the credential, never from the cursor. */
function next(lastKey: Item | undefined, idOf: (key: keys.Key) => string | undefined): { next?: string } {
  return lastKey ? { next: `${unmarshall(lastKey).createdAt} ${idOf(keyOf(lastKey))}` } : {};
}

function placeAfter(position: string | undefined, start: (id: string) => object): Item | undefined {
  if (position === undefined) return undefined;
  const [createdAt = '', id = ''] = position.split(' ');
  return marshall({ ...start(id), createdAt });
}
