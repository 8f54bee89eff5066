import {
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { Approval } from '../approval/approval.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import type { Commit, RunChange } from './commit.ts';
import { capWrite, runningByWorkspace } from './dynamo-caps.ts';
import {
  APPROVAL_IS_OPEN,
  attemptsAre,
  intentIsOurs,
  keyIsFreeFor,
  leaseIsHeldAt,
  ROW_IS_NEW,
  recordIsNewOrExpired,
  runIsAt,
  statusIs,
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
import {
  type Condition,
  conditionFields,
  isRefusal,
  type Pause,
  put,
  remove,
  transact,
} from './dynamo-transactions.ts';
import type { IdempotencyRecord } from './idempotency.ts';
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

const BATCH_GET_MAX_KEYS = 100;

export class DynamoRunStore implements RunStore {
  readonly #client: DynamoDBClient;
  readonly #table: string;
  readonly #pause: Pause;

  constructor(client: DynamoDBClient, table: string, pause: Pause) {
    this.#client = client;
    this.#table = table;
    this.#pause = pause;
  }

  async ingest({ records, trigger, runs, at }: Ingest): Promise<IngestResult> {
    const refusals = await this.#transact([
      ...records.map((record) => put(this.#table, idempotencyItem(record), recordIsNewOrExpired(at))),
      ...runs.flatMap(({ run, commit }) => [
        put(this.#table, runItem(run), ROW_IS_NEW),
        put(this.#table, toItem(keys.commitKey(run.tenant, run.runId, commit.seq), commit), ROW_IS_NEW),
        put(this.#table, triggerItem(run.tenant, run.runId, trigger)),
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
    const refusals = await this.#transact([
      put(this.#table, runItem(run), runIsAt(change.expectedSeq)),
      put(this.#table, toItem(keys.commitKey(tenant, runId, commit.seq), commit), ROW_IS_NEW),
      ...change.steps.map(({ step, expectedLeaseVersion }) =>
        put(
          this.#table,
          toItem(keys.stepKey(tenant, runId, step.index), step),
          expectedLeaseVersion === 'new' ? ROW_IS_NEW : stepIsHeldAt(expectedLeaseVersion),
        ),
      ),
      ...change.receipts.map(({ receipt, expects }) =>
        put(
          this.#table,
          toItem(keys.receiptKey(tenant, receipt.key), receipt),
          expects === 'free' ? keyIsFreeFor(receipt) : intentIsOurs(receipt),
        ),
      ),
      ...change.approvals.map(({ approval, expectedStatus }) =>
        put(this.#table, approvalItem(approval), expectedStatus === 'new' ? ROW_IS_NEW : statusIs(expectedStatus)),
      ),
      ...change.outbox.map((entry) => put(this.#table, outboxItem(entry))),
      ...change.caps.map((write) => capWrite(this.#table, tenant, write)),
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
    const stored = await this.#get<Commit>(keys.commitKey(run.tenant, run.runId, commit.seq));
    return stored?.hash === commit.hash;
  }

  async renewLease(tenant: string, runId: string, step: RunningStep, expiresAt: string): Promise<boolean> {
    const renewed: RunningStep = { ...step, lease: { ...step.lease, expiresAt } };
    const item = toItem(keys.stepKey(tenant, runId, step.index), renewed);
    return this.#putIf(item, leaseIsHeldAt(step.leaseVersion));
  }

  async load(tenant: string, runId: string): Promise<LoadedRun | undefined> {
    return assemble(await this.#partition(tenant, runId, keys.FIRST_WORKING_SORT_KEY));
  }

  async loadWhole(tenant: string, runId: string): Promise<WholeRun | undefined> {
    const items = await this.#partition(tenant, runId, keys.FIRST_SORT_KEY);
    const loaded = assemble(items);
    return loaded && { ...loaded, commits: items.filter(isCommit).map((item) => docOf<Commit>(item)) };
  }

  #partition(tenant: string, runId: string, from: string): Promise<Item[]> {
    return this.#queryAll({
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
    const { Items = [], LastEvaluatedKey } = await this.#client.send(
      new QueryCommand({
        TableName: this.#table,
        IndexName: index.name,
        KeyConditionExpression: `${index.partition} = :partition`,
        ExpressionAttributeValues: marshall({ ':partition': partition }),
        ScanIndexForward: false,
        Limit: limit,
        ...(after !== undefined && { ExclusiveStartKey: startKey(tenant, index.partition, partition, after) }),
      }),
    );
    const found = await this.#batchGet<Run>(Items.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' })));
    const newestFirst = found
      .filter((run) => status === undefined || run.status === status)
      .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    return { items: newestFirst, ...(LastEvaluatedKey && { next: position(LastEvaluatedKey) }) };
  }

  async listCommits(tenant: string, runId: string, { after, limit }: { after: number; limit: number }) {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({
        TableName: this.#table,
        KeyConditionExpression: 'pk = :pk AND sk BETWEEN :first AND :last',
        ExpressionAttributeValues: marshall({
          ':pk': keys.runKey(tenant, runId).pk,
          ':first': keys.commitKey(tenant, runId, after + 1).sk,
          ':last': `${keys.COMMIT_PREFIX}~`,
        }),
        ConsistentRead: true,
        Limit: limit,
      }),
    );
    return Items.map((item) => docOf<Commit>(item));
  }

  async waitingLine(tenant: string, limit: number, shards: number): Promise<WaitingLine> {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({
        TableName: this.#table,
        IndexName: keys.INDEXES.byStatus.name,
        KeyConditionExpression: 'statusKey = :queued',
        ExpressionAttributeValues: marshall({ ':queued': keys.statusIndexKey(tenant, 'queued') }),
        Limit: limit,
      }),
    );
    const [runs, counters] = await Promise.all([
      this.#batchGet<Run>(Items.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' }))),
      this.#batchGetItems(Array.from({ length: shards }, (_, shard) => keys.slotCounterKey(tenant, shard))),
    ]);
    const waiting = runs.filter(({ status }) => status === 'queued');
    return {
      waiting: waiting.map(({ runId, workspace, createdAt }) => ({ runId, workspace, createdAt })),
      running: runningByWorkspace(counters),
    };
  }

  receipts(tenant: string, receiptKeys: string[]): Promise<Receipt[]> {
    return this.#batchGet([...new Set(receiptKeys)].map((key) => keys.receiptKey(tenant, key)));
  }

  approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined> {
    return this.#get(keys.approvalKey(tenant, runId, approvalId));
  }

  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined> {
    return this.#get(keys.evidenceKey(tenant, runId));
  }

  async due(shard: number, now: string, limit: number): Promise<DueItem[]> {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({
        TableName: this.#table,
        IndexName: keys.INDEXES.due.name,
        KeyConditionExpression: 'dueShard = :shard AND dueAt <= :now',
        ExpressionAttributeValues: marshall({ ':shard': keys.dueIndexKey(shard), ':now': now }),
        Limit: limit,
      }),
    );
    const rows = Items.map((item) => ({ pk: item.pk?.S ?? '', sk: item.sk?.S ?? '' }));
    const runs = rows.flatMap(({ pk }) => keys.parseRunPartition(pk) ?? []);
    const entries = await this.#batchGet<OutboxEntry>(rows.filter(({ pk }) => pk.startsWith('OUTBOX#')));
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
    return this.#putIf(item, attemptsAre(entry.attempts));
  }

  async fulfilSeal(entryId: string, tenant: string, runId: string, evidence: EvidenceRecord): Promise<void> {
    const refusals = await this.#transact([
      put(this.#table, toItem(keys.evidenceKey(tenant, runId), evidence), ROW_IS_NEW),
      remove(this.#table, keys.outboxKey(entryId)),
    ]);
    // Sealed before: the record stands as it was written first, only the promise is left to clear.
    if (refusals) await this.#transact([remove(this.#table, keys.outboxKey(entryId))]);
  }

  async fulfilApproval(entryId: string, approval: Approval, taskToken: string): Promise<boolean> {
    const { tenant, runId, approvalId } = approval;
    const refusals = await this.#transact([
      put(this.#table, approvalItem({ ...approval, status: 'notified' }), APPROVAL_IS_OPEN),
      // Beside the approval, not in it: whoever may read an approval never sees its token.
      put(this.#table, toItem(keys.taskTokenKey(tenant, runId, approvalId), { taskToken })),
      remove(this.#table, keys.outboxKey(entryId)),
    ]);
    if (refusals) await this.#transact([remove(this.#table, keys.outboxKey(entryId))]);
    return !refusals;
  }

  /** One conditional write; false if its condition does not hold. */
  async #putIf(item: Item, condition: Condition): Promise<boolean> {
    try {
      await this.#client.send(
        new PutItemCommand({ TableName: this.#table, Item: item, ...conditionFields(condition) }),
      );
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  }

  #transact(writes: Parameters<typeof transact>[1]) {
    return transact(this.#client, writes, this.#pause);
  }

  async #get<T>(key: keys.Key): Promise<T | undefined> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#table, Key: marshall(key), ConsistentRead: true }),
    );
    return Item && docOf<T>(Item);
  }

  async #batchGet<T>(wanted: keys.Key[]): Promise<T[]> {
    return (await this.#batchGetItems(wanted)).map((item) => docOf<T>(item));
  }

  async #batchGetItems(wanted: keys.Key[]): Promise<Item[]> {
    const found: Item[] = [];
    let open = wanted.map((key) => marshall(key));
    while (open.length > 0) {
      const asked = open.slice(0, BATCH_GET_MAX_KEYS);
      const { Responses, UnprocessedKeys } = await this.#client.send(
        new BatchGetItemCommand({ RequestItems: { [this.#table]: { Keys: asked, ConsistentRead: true } } }),
      );
      found.push(...(Responses?.[this.#table] ?? []));
      open = [...open.slice(BATCH_GET_MAX_KEYS), ...(UnprocessedKeys?.[this.#table]?.Keys ?? [])];
    }
    return found;
  }

  async #queryAll(query: Omit<QueryCommandInput, 'TableName'>): Promise<Item[]> {
    const items: Item[] = [];
    let ExclusiveStartKey: Item | undefined;
    do {
      const page = await this.#client.send(new QueryCommand({ TableName: this.#table, ...query, ExclusiveStartKey }));
      items.push(...(page.Items ?? []));
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey);
    return items;
  }
}

function assemble(items: Item[]): LoadedRun | undefined {
  const run = items.find(({ sk }) => sk?.S === 'RUN');
  const trigger = items.find(({ sk }) => sk?.S === 'TRIGGER');
  const steps = items.filter(({ sk }) => sk?.S?.startsWith(keys.STEP_PREFIX)).map((item) => docOf<Step>(item));
  return run && trigger && { run: docOf(run), trigger: triggerOf(trigger), steps };
}

const isCommit = ({ sk }: Item) => sk?.S?.startsWith(keys.COMMIT_PREFIX) === true;

/** A list's position is the last row's time and run: tenant and index come from the credential, never from the cursor. */
function position(lastKey: Item): string {
  const { pk, createdAt } = unmarshall(lastKey);
  return `${createdAt} ${keys.parseRunPartition(pk)?.runId}`;
}

function startKey(tenant: string, partitionAttribute: string, partition: string, after: string): Item {
  const [createdAt = '', runId = ''] = after.split(' ');
  return marshall({ ...keys.runKey(tenant, runId), [partitionAttribute]: partition, createdAt });
}
