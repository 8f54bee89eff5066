import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { type Approval, isOpen, runIdOf } from '../approval/approval.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import type { Commit, RunChange } from './commit.ts';
import { capWrite, runningByWorkspace } from './dynamo-caps.ts';
import {
  attemptsAre,
  intentIsOurs,
  keyIsFreeFor,
  leaseIsHeldAt,
  ROW_IS_NEW,
  recordIsNewOrExpired,
  revisionIs,
  runIsAt,
  stepIsHeldAt,
} from './dynamo-conditions.ts';
import {
  approvalItem,
  docOf,
  type Item,
  idempotencyItem,
  outboxItem,
  runItem,
  toItem,
  triggerItem,
  triggerOf,
} from './dynamo-items.ts';
import * as keys from './dynamo-keys.ts';
import { DynamoRows } from './dynamo-rows.ts';
import { isRefusal, type Pause } from './dynamo-transactions.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import { dayOf, type LogEntry } from './log-entry.ts';
import type { Receipt } from './receipt.ts';
import type { Run, RunStatus } from './run.ts';
import type {
  CommitResult,
  DueItem,
  EvidenceRecord,
  Ingest,
  IngestResult,
  LoadedRun,
  Page,
  RunStore,
  WaitingLine,
  WholeRun,
} from './run-store.ts';
import type { RunningStep, Step } from './step.ts';

export class DynamoRunStore implements RunStore {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string, pause: Pause) {
    this.#rows = new DynamoRows(client, table, pause);
  }

  async ingest({ records, trigger, runs, at }: Ingest): Promise<IngestResult> {
    const refusals = await this.#rows.transact([
      ...records.map((record) => this.#rows.put(idempotencyItem(record), recordIsNewOrExpired(at))),
      ...runs.flatMap(({ run, commit }) => [
        this.#rows.put(runItem(run), ROW_IS_NEW),
        this.#rows.put(toItem(keys.commitKey(run.tenant, run.runId, commit.seq), commit), ROW_IS_NEW),
        this.#rows.put(triggerItem(run.tenant, run.runId, trigger)),
      ]),
    ]);
    if (!refusals) return { outcome: 'created' };
    const item = refusals.slice(0, records.length).find(isRefusal)?.Item;
    if (!item) throw new Error(`a new run's id is taken: ${runs.map(({ run }) => run.runId).join(', ')}`);
    const held = docOf<IdempotencyRecord>(item);
    // The same run ids can only come from this very transaction, applied with its reply lost.
    const own = held.runIds.length === runs.length && held.runIds.every((id, i) => id === runs[i]?.run.runId);
    return own ? { outcome: 'created' } : { outcome: 'duplicate', record: held };
  }

  async commit(change: RunChange): Promise<CommitResult> {
    const { run, commit } = change;
    const { tenant, runId } = run;
    const beforeReceipts = 2 + change.steps.length;
    const refusals = await this.#rows.transact([
      this.#rows.put(runItem(run), runIsAt(change.expectedSeq)),
      this.#rows.put(toItem(keys.commitKey(tenant, runId, commit.seq), commit), ROW_IS_NEW),
      ...change.steps.map(({ step, expectedLeaseVersion }) =>
        this.#rows.put(
          toItem(keys.stepKey(tenant, runId, step.index), step),
          expectedLeaseVersion === 'new' ? ROW_IS_NEW : stepIsHeldAt(expectedLeaseVersion),
        ),
      ),
      ...change.receipts.map(({ receipt, expects }) =>
        this.#rows.put(
          toItem(keys.receiptKey(tenant, receipt.key), receipt),
          expects === 'free' ? keyIsFreeFor(receipt) : intentIsOurs(receipt),
        ),
      ),
      ...change.approvals.map(({ approval, expectedRevision }) =>
        this.#rows.put(approvalItem(approval), expectedRevision === 'new' ? ROW_IS_NEW : revisionIs(expectedRevision)),
      ),
      ...change.outbox.map((entry) => this.#rows.put(outboxItem(entry))),
      ...change.caps.map((write) => capWrite(this.#rows.table, tenant, write)),
    ]);
    if (!refusals) return { outcome: 'committed' };
    if (isRefusal(refusals[0]) || isRefusal(refusals[1])) {
      return (await this.#wasOurs(change)) ? { outcome: 'committed' } : { outcome: 'lost' };
    }
    const heldAt = change.receipts.findIndex(
      (write, index) => write.expects === 'free' && isRefusal(refusals[beforeReceipts + index]),
    );
    const held = refusals[beforeReceipts + heldAt]?.Item;
    if (heldAt >= 0 && held) return { outcome: 'receipt_held', receipt: docOf(held) };
    const caps = refusals.slice(refusals.length - change.caps.length);
    return change.caps.length > 0 && caps.some(isRefusal) ? { outcome: 'no_room' } : { outcome: 'lost' };
  }

  /** A commit whose reply was lost looks like a lost race; the commit row at its number tells whose it is. */
  async #wasOurs({ run, commit }: RunChange): Promise<boolean> {
    const stored = await this.#rows.get<Commit>(keys.commitKey(run.tenant, run.runId, commit.seq));
    return stored?.hash === commit.hash;
  }

  async renewLease(tenant: string, runId: string, step: RunningStep, expiresAt: string): Promise<boolean> {
    const renewed: RunningStep = { ...step, lease: { ...step.lease, expiresAt } };
    const item = toItem(keys.stepKey(tenant, runId, step.index), renewed);
    return this.#rows.putIf(item, leaseIsHeldAt(step.leaseVersion));
  }

  async load(tenant: string, runId: string): Promise<LoadedRun | undefined> {
    return assemble(await this.#partition(tenant, runId, keys.FIRST_WORKING_SORT_KEY));
  }

  async loadWhole(tenant: string, runId: string): Promise<WholeRun | undefined> {
    const items = await this.#partition(tenant, runId, keys.FIRST_SORT_KEY);
    const loaded = assemble(items);
    return (
      loaded && {
        ...loaded,
        commits: items.filter(under(keys.COMMIT_PREFIX)).map((item) => docOf<Commit>(item)),
        approvals: items.filter(under(keys.APPROVAL_PREFIX)).map((item) => docOf<Approval>(item)),
      }
    );
  }

  #partition(tenant: string, runId: string, from: string): Promise<Item[]> {
    return this.#rows.queryAll({
      KeyConditionExpression: 'pk = :pk AND sk >= :from',
      ExpressionAttributeValues: marshall({ ':pk': keys.runKey(tenant, runId).pk, ':from': from }),
      ConsistentRead: true,
    });
  }

  async listRuns(
    tenant: string,
    { status, limit, after }: { status?: RunStatus; limit: number; after?: string },
  ): Promise<Page<Run>> {
    const index = status ? keys.INDEXES.byStatus : keys.INDEXES.byTenant;
    const partition = status ? keys.statusIndexKey(tenant, status) : keys.tenantIndexKey(tenant);
    const { items, lastKey } = await this.#rows.page({
      IndexName: index.name,
      KeyConditionExpression: `${index.partition} = :partition`,
      ExpressionAttributeValues: marshall({ ':partition': partition }),
      ScanIndexForward: false,
      Limit: limit,
      ...(after !== undefined && { ExclusiveStartKey: startKey(tenant, index.partition, partition, after) }),
    });
    const found = await this.#rows.batchGet<Run>(items.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' })));
    const newestFirst = found
      .filter((run) => status === undefined || run.status === status)
      .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    return { items: newestFirst, ...(lastKey && { next: position(lastKey) }) };
  }

  async listCommits(tenant: string, runId: string, { after, limit }: { after: number; limit: number }) {
    const { items } = await this.#rows.page({
      KeyConditionExpression: 'pk = :pk AND sk BETWEEN :first AND :last',
      ExpressionAttributeValues: marshall({
        ':pk': keys.runKey(tenant, runId).pk,
        ':first': keys.commitKey(tenant, runId, after + 1).sk,
        ':last': `${keys.COMMIT_PREFIX}~`,
      }),
      ConsistentRead: true,
      Limit: limit,
    });
    return items.map((item) => docOf<Commit>(item));
  }

  async waitingLine(tenant: string, limit: number, shards: number): Promise<WaitingLine> {
    const { items } = await this.#rows.page({
      IndexName: keys.INDEXES.byStatus.name,
      KeyConditionExpression: 'statusKey = :queued',
      ExpressionAttributeValues: marshall({ ':queued': keys.statusIndexKey(tenant, 'queued') }),
      Limit: limit,
    });
    const [runs, counters] = await Promise.all([
      this.#rows.batchGet<Run>(items.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' }))),
      this.#rows.batchGetItems(Array.from({ length: shards }, (_, shard) => keys.slotCounterKey(tenant, shard))),
    ]);
    const waiting = runs.filter(({ status }) => status === 'queued');
    return {
      waiting: waiting.map(({ runId, workspace, createdAt }) => ({ runId, workspace, createdAt })),
      running: runningByWorkspace(counters),
    };
  }

  receipts(tenant: string, receiptKeys: string[]): Promise<Receipt[]> {
    return this.#rows.batchGet([...new Set(receiptKeys)].map((key) => keys.receiptKey(tenant, key)));
  }

  approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined> {
    return this.#rows.get(keys.approvalKey(tenant, runId, approvalId));
  }

  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined> {
    return this.#rows.get(keys.evidenceKey(tenant, runId));
  }

  async due(shard: number, now: string, limit: number): Promise<DueItem[]> {
    const { items } = await this.#rows.page({
      IndexName: keys.INDEXES.due.name,
      KeyConditionExpression: 'dueShard = :shard AND dueAt <= :now',
      ExpressionAttributeValues: marshall({ ':shard': keys.dueIndexKey(shard), ':now': now }),
      Limit: limit,
    });
    const rows = items.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' }));
    const runs = rows.flatMap(({ pk }) => keys.parseRunPartition(pk) ?? []);
    const entries = await this.#rows.batchGet<OutboxEntry>(rows.filter(({ pk }) => pk.startsWith('OUTBOX#')));
    return [
      ...runs.map((run) => ({ kind: 'run' as const, ...run })),
      ...entries.map((entry) => ({ kind: 'outbox' as const, entry })),
    ];
  }

  async bumpOutbox(entry: OutboxEntry, dueAt: string | undefined): Promise<boolean> {
    const bumped = { ...entry, attempts: entry.attempts + 1, ...(dueAt !== undefined && { dueAt }) };
    const item = outboxItem(bumped);
    // Given up on: the row stays for people to see, but leaves the index the sweeper reads.
    if (dueAt === undefined) delete item.dueShard;
    return this.#rows.putIf(item, attemptsAre(entry.attempts));
  }

  async fulfilSeal(
    entryId: string,
    tenant: string,
    runId: string,
    evidence: EvidenceRecord,
    { logged, promises }: { logged: LogEntry; promises: OutboxEntry[] },
  ): Promise<void> {
    const refusals = await this.#rows.transact([
      this.#rows.put(toItem(keys.evidenceKey(tenant, runId), evidence), ROW_IS_NEW),
      this.#rows.put(toItem(keys.logEntryKey(tenant, dayOf(logged.sealedAt), runId), logged)),
      ...promises.map((promise) => this.#rows.put(outboxItem(promise))),
      this.#rows.remove(keys.outboxKey(entryId)),
    ]);
    // Sealed before: the record stands as it was written first, only the promise is left to clear.
    if (refusals) await this.fulfilled(entryId);
  }

  async pendingApprovals(tenant: string, { limit, after }: { limit: number; after?: string }): Promise<Page<Approval>> {
    const index = keys.INDEXES.pendingApprovals;
    const partition = keys.tenantIndexKey(tenant);
    const { items, lastKey } = await this.#rows.page({
      IndexName: index.name,
      KeyConditionExpression: `${index.partition} = :partition`,
      ExpressionAttributeValues: marshall({ ':partition': partition }),
      Limit: limit,
      ...(after !== undefined && { ExclusiveStartKey: approvalStart(tenant, partition, after) }),
    });
    const found = await this.#rows.pointedAt<Approval>(items);
    const oldestFirst = found.filter(isOpen).sort((a, b) => (a.requestedAt < b.requestedAt ? -1 : 1));
    return { items: oldestFirst, ...(lastKey && { next: approvalPosition(lastKey) }) };
  }

  async holdApproval(entryId: string, read: Approval, changes: Partial<Approval>, taskToken: string): Promise<boolean> {
    const { tenant, runId, approvalId, revision } = read;
    const refusals = await this.#rows.transact([
      this.#rows.put(approvalItem({ ...read, ...changes, revision: revision + 1 }), revisionIs(revision)),
      // Beside the approval, not in it: whoever may read an approval never sees its token.
      this.#rows.put(toItem(keys.taskTokenKey(tenant, runId, approvalId), { taskToken })),
      this.#rows.remove(keys.outboxKey(entryId)),
    ]);
    return !refusals;
  }

  async taskToken(tenant: string, runId: string, approvalId: string): Promise<string | undefined> {
    const kept = await this.#rows.get<{ taskToken: string }>(keys.taskTokenKey(tenant, runId, approvalId));
    return kept?.taskToken;
  }

  async fulfilled(entryId: string): Promise<void> {
    await this.#rows.transact([this.#rows.remove(keys.outboxKey(entryId))]);
  }
}

function assemble(items: Item[]): LoadedRun | undefined {
  const run = items.find(({ sk }) => sk?.S === 'RUN');
  const trigger = items.find(({ sk }) => sk?.S === 'TRIGGER');
  const steps = items.filter(under(keys.STEP_PREFIX)).map((item) => docOf<Step>(item));
  return run && trigger && { run: docOf(run), trigger: triggerOf(trigger), steps };
}

const under =
  (prefix: string) =>
  ({ sk }: Item) =>
    sk?.S?.startsWith(prefix) === true;

/** A list's position is the last row's time and run: tenant and index come from the credential, never from the cursor. */
function position(lastKey: Item): string {
  const { pk, createdAt } = unmarshall(lastKey);
  return `${createdAt} ${keys.parseRunPartition(pk)?.runId}`;
}

function startKey(tenant: string, partitionAttribute: string, partition: string, after: string): Item {
  const [createdAt = '', runId = ''] = after.split(' ');
  return marshall({ ...keys.runKey(tenant, runId), [partitionAttribute]: partition, createdAt });
}

/** As for runs: tenant and index come from the credential, never from the cursor. */
function approvalPosition(lastKey: Item): string {
  const { sk, createdAt } = unmarshall(lastKey);
  return `${createdAt} ${sk.slice(keys.APPROVAL_PREFIX.length)}`;
}

function approvalStart(tenant: string, partition: string, after: string): Item {
  const [createdAt = '', approvalId = ''] = after.split(' ');
  const key = keys.approvalKey(tenant, runIdOf(approvalId), approvalId);
  return marshall({ ...key, [keys.INDEXES.pendingApprovals.partition]: partition, createdAt });
}
