import type { Approval } from '../../lambdas/approval/approval.ts';
import type { OutboxEntry } from '../../lambdas/outbox/outbox.ts';
import type { Commit, RunChange } from '../../lambdas/run/commit.ts';
import { shardOf } from '../../lambdas/run/dynamo-keys.ts';
import type { IdempotencyRecord } from '../../lambdas/run/idempotency.ts';
import type { Receipt } from '../../lambdas/run/receipt.ts';
import { isTerminal, type Run, type RunStatus, type Trigger } from '../../lambdas/run/run.ts';
import type {
  CommitResult,
  DueItem,
  EvidenceRecord,
  Ingest,
  IngestResult,
  LoadedRun,
  Page,
  RunStore,
} from '../../lambdas/run/run-store.ts';
import type { Step } from '../../lambdas/run/step.ts';
import { MemoryRows, transact, write } from './memory-rows.ts';
import { type Passage, undisturbed } from './passage.ts';

const runOf = (tenant: string, runId: string) => `${tenant}/${runId}`;
const padded = (value: number) => String(value).padStart(8, '0');
const isNew = (current: unknown) => current === undefined;

/** The run store's promises without DynamoDB: the same conditions, lost races and pages, in one process. */
export class MemoryRunStore implements RunStore {
  readonly #runs = new MemoryRows<Run>();
  readonly #triggers = new MemoryRows<Trigger>();
  readonly #steps = new MemoryRows<Step>();
  readonly #commits = new MemoryRows<Commit>();
  readonly #receipts = new MemoryRows<Receipt>();
  readonly #approvals = new MemoryRows<Approval>();
  readonly #taskTokens = new MemoryRows<string>();
  readonly #evidence = new MemoryRows<EvidenceRecord>();
  readonly #idempotency = new MemoryRows<IdempotencyRecord>();
  /** An entry the sweeper gave up on stays for people to see, but is never due again. */
  readonly #outbox = new MemoryRows<OutboxEntry & { givenUp?: true }>();
  readonly #passage: Passage;

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  /** The choke point: every call of every caller passes here, and takes effect within one turn of the event loop. */
  protected async operation<T>(name: string, run: () => T): Promise<T> {
    return this.#passage(name, async () => run());
  }

  ingest({ record, trigger, runs, at }: Ingest): Promise<IngestResult> {
    return this.operation('ingest', () => {
      const recordKey = [record.tenant, record.key] as const;
      const held = this.#idempotency.get(...recordKey);
      const refusals = transact([
        write(this.#idempotency, recordKey, record, (now) => now === undefined || now.expiresAt <= at),
        ...runs.flatMap(({ run, commit }) => {
          const key = runOf(run.tenant, run.runId);
          return [
            write(this.#runs, [key], run, isNew),
            write(this.#commits, [key, padded(commit.seq)], commit, isNew),
            write(this.#triggers, [key], trigger),
          ];
        }),
      ]);
      if (!refusals) return { outcome: 'created' };
      if (!refusals[0] || !held) throw new Error('a new run has an id that is taken');
      const own = held.runIds.join() === runs.map(({ run }) => run.runId).join();
      return own ? { outcome: 'created' } : { outcome: 'duplicate', record: held };
    });
  }

  commit(change: RunChange): Promise<CommitResult> {
    return this.operation('commit', () => this.#commit(change));
  }

  #commit({ expectedSeq, run, commit, steps, receipts, approvals, outbox }: RunChange): CommitResult {
    const key = runOf(run.tenant, run.runId);
    const refusals = transact([
      write(this.#runs, [key], run, (current) => current?.seq === expectedSeq),
      write(this.#commits, [key, padded(commit.seq)], commit, isNew),
      ...steps.map(({ step, expectedLeaseVersion }) =>
        write(this.#steps, [key, padded(step.index)], step, (current) =>
          expectedLeaseVersion === 'new' ? isNew(current) : current?.leaseVersion === expectedLeaseVersion,
        ),
      ),
      ...receipts.map(({ receipt, expects }) =>
        write(this.#receipts, [run.tenant, receipt.key], receipt, (current) =>
          expects === 'free' ? isFreeFor(receipt, current) : isIntentOf(receipt, current),
        ),
      ),
      ...approvals.map(({ approval, expectedStatus }) =>
        write(this.#approvals, [key, approval.approvalId], approval, (current) =>
          expectedStatus === 'new' ? isNew(current) : current?.status === expectedStatus,
        ),
      ),
      ...outbox.map((entry) => write(this.#outbox, [entry.id], entry)),
    ]);
    if (!refusals) return { outcome: 'committed' };
    if (refusals[0] || refusals[1]) {
      const ours = this.#commits.get(key, padded(commit.seq))?.hash === commit.hash;
      return ours ? { outcome: 'committed' } : { outcome: 'lost' };
    }
    const wanted = receipts.find(({ expects }, at) => expects === 'free' && refusals[2 + steps.length + at]);
    const holder = wanted && this.#receipts.get(run.tenant, wanted.receipt.key);
    return holder ? { outcome: 'receipt_held', receipt: holder } : { outcome: 'lost' };
  }

  load(tenant: string, runId: string): Promise<LoadedRun | undefined> {
    return this.operation('load', () => {
      const key = runOf(tenant, runId);
      const run = this.#runs.get(key);
      const trigger = this.#triggers.get(key);
      return run && trigger && { run, trigger, steps: this.#steps.inPartition(key) };
    });
  }

  listRuns(
    tenant: string,
    { status, limit, after }: { status?: RunStatus; limit: number; after?: string },
  ): Promise<Page<Run>> {
    return this.operation('listRuns', () => {
      const newestFirst = this.#runs
        .all()
        .filter((run) => run.tenant === tenant && (status === undefined || run.status === status))
        .filter((run) => after === undefined || positionOf(run) < after)
        .sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1));
      const items = newestFirst.slice(0, limit);
      const last = items.at(-1);
      // As DynamoDB does: a full page says how to go on, even if nothing follows.
      return { items, ...(last && items.length === limit && { next: positionOf(last) }) };
    });
  }

  listCommits(tenant: string, runId: string, { after, limit }: { after: number; limit: number }): Promise<Commit[]> {
    return this.operation('listCommits', () =>
      this.#commits
        .inPartition(runOf(tenant, runId))
        .filter(({ seq }) => seq > after)
        .slice(0, limit),
    );
  }

  receipts(tenant: string, keys: string[]): Promise<Receipt[]> {
    return this.operation('receipts', () => [...new Set(keys)].flatMap((key) => this.#receipts.get(tenant, key) ?? []));
  }

  approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined> {
    return this.operation('approval', () => this.#approvals.get(runOf(tenant, runId), approvalId));
  }

  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined> {
    return this.operation('evidence', () => this.#evidence.get(runOf(tenant, runId)));
  }

  due(shard: number, now: string, limit: number): Promise<DueItem[]> {
    return this.operation('due', () => {
      const runs = this.#runs.all().flatMap((run) => {
        if (isTerminal(run) || shardOf(run.runId) !== shard) return [];
        return [{ dueAt: run.dueAt, item: { kind: 'run' as const, tenant: run.tenant, runId: run.runId } }];
      });
      const entries = this.#outbox.all().flatMap(({ givenUp, ...entry }) => {
        if (givenUp || shardOf(entry.runId) !== shard) return [];
        return [{ dueAt: entry.dueAt, item: { kind: 'outbox' as const, entry } }];
      });
      return [...runs, ...entries]
        .filter(({ dueAt }) => dueAt <= now)
        .sort((a, b) => (a.dueAt < b.dueAt ? -1 : 1))
        .slice(0, limit)
        .map(({ item }) => item);
    });
  }

  bumpOutbox(entry: OutboxEntry, dueAt: string | undefined): Promise<boolean> {
    return this.operation('bumpOutbox', () => {
      const next = dueAt === undefined ? { givenUp: true as const } : { dueAt };
      const bumped = { ...entry, attempts: entry.attempts + 1, ...next };
      return !transact([write(this.#outbox, [entry.id], bumped, (current) => current?.attempts === entry.attempts)]);
    });
  }

  fulfilSeal(entryId: string, tenant: string, runId: string, evidence: EvidenceRecord): Promise<void> {
    return this.operation('fulfilSeal', () => {
      const promiseGoes = write(this.#outbox, [entryId], undefined);
      const refusals = transact([write(this.#evidence, [runOf(tenant, runId)], evidence, isNew), promiseGoes]);
      if (refusals) transact([promiseGoes]);
    });
  }

  fulfilApproval(entryId: string, approval: Approval, taskToken: string): Promise<void> {
    return this.operation('fulfilApproval', () => {
      const key = [runOf(approval.tenant, approval.runId), approval.approvalId] as const;
      const notified: Approval = { ...approval, status: 'notified' };
      transact([
        write(this.#approvals, key, notified, (current) => current?.status === approval.status),
        write(this.#taskTokens, key, taskToken),
        write(this.#outbox, [entryId], undefined),
      ]);
    });
  }
}

/** Run ids end the position, so that runs of one moment have an order too. */
const positionOf = ({ createdAt, runId }: Run) => `${createdAt} ${runId}`;

function isFreeFor(receipt: Receipt, current: Receipt | undefined): boolean {
  if (current === undefined || current.outcome === 'failed') return true;
  const ownEarlierAttempt = current.runId === receipt.runId && current.stepIndex === receipt.stepIndex;
  return current.outcome !== 'succeeded' && ownEarlierAttempt;
}

function isIntentOf(receipt: Receipt, current: Receipt | undefined): boolean {
  return current?.runId === receipt.runId && current.leaseVersion === receipt.leaseVersion;
}
