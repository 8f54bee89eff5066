import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { type OutboxEntry, redriven, type StartApproval } from '../../outbox/outbox.ts';
import type { Approval } from '../approval.ts';
import type { Commit, CreatedRun, RunChange, StepWrite } from '../commit.ts';
import type { IdempotencyRecord } from '../idempotency.ts';
import { dayOf, type LogEntry, logEntryId } from '../log-entry.ts';
import type { Run, TerminalRun, Trigger } from '../run.ts';
import {
  type ArtifactReference,
  type CommitResult,
  type DueRun,
  type EvidenceRecord,
  type Ingest,
  type IngestResult,
  originalOf,
  type RunStore,
  rerunOf,
  type SweepRecord,
  type WaitToken,
} from '../run-store.ts';
import type { RunningStep } from '../step.ts';
import { capWrite } from './dynamo-caps.ts';
import {
  ATTEMPTS_ARE_NOT_COUNTED,
  attemptsAre,
  CARD_IS_NOT_BEING_POSTED,
  dueTimeIs,
  leaseIsHeldAt,
  leaseIsNotTaken,
  ROW_EXISTS,
  ROW_IS_NEW,
  receiptIsAs,
  recordIsNewOrExpired,
  revisionIs,
  runIsAt,
  runIsBefore,
  tokenIsNotLaterThan,
} from './dynamo-conditions.ts';
import {
  approvalItem,
  assignmentItem,
  docOf,
  type Item,
  idempotencyItem,
  keyOf,
  outboxItem,
  receiptItem,
  runItem,
  toItem,
  triggerItems,
} from './dynamo-items.ts';
import * as keys from './dynamo-keys.ts';
import { wholePartition } from './dynamo-rows.ts';
import { DynamoRunReads } from './dynamo-run-reads.ts';
import { commitItems, leaseItem, needsRunRow, progressOf } from './dynamo-stored-run.ts';
import { type Condition, isRefusal } from './dynamo-transactions.ts';

const ROWS_EXPIRED_AT_ONCE = 25;

export class DynamoRunStore extends DynamoRunReads implements RunStore {
  #transact(writes: TransactWriteItem[]) {
    return this.rows.transact(writes, this.pause);
  }

  async ingest(ingest: Ingest): Promise<IngestResult> {
    const { records, runs, at } = ingest;
    let held = await this.#putIngest(ingest, ROW_IS_NEW);
    const record = held === 'no_slot' ? undefined : held;
    const expired = record && record.key === records[0]?.key && record.expiresAt <= at ? record : undefined;
    // The expired record is replaced, and the result says so.
    if (expired) held = await this.#putIngest(ingest, recordIsNewOrExpired(at));
    if (!held) return { outcome: 'created', ...(expired && { expired }) };
    if (held === 'no_slot') return { outcome: held };
    const { runIds } = held;
    // The same run ids mean that this transaction was applied and its response was lost.
    const own = runs.length > 0 && runs.every(({ run }) => runIds.includes(run.runId));
    return own ? { outcome: 'created' } : { outcome: 'duplicate', record: held };
  }

  /** Returns the record that prevents the write, or that the cap does. */
  async #putIngest(
    { records, trigger, runs, at, cap }: Ingest,
    own: Condition,
  ): Promise<IdempotencyRecord | 'no_slot' | undefined> {
    const tenant = records[0]?.tenant ?? '';
    const refusals = await this.#transact([
      ...records.map((record, index) =>
        this.rows.put(idempotencyItem(record), index === 0 ? own : recordIsNewOrExpired(at)),
      ),
      ...runs.flatMap((created) => this.#putNewRun(created)),
      ...this.#putTriggers(runs, trigger),
      ...(cap ? [capWrite(this.rows.table, tenant, cap)] : []),
    ]);
    if (!refusals) return undefined;
    const item = refusals.slice(0, records.length).find(isRefusal)?.Item;
    if (!item && cap && isRefusal(refusals.at(-1))) return 'no_slot';
    if (!item) throw new Error(`a new run's id is taken: ${runs.map(({ run }) => run.runId).join(', ')}`);
    return docOf<IdempotencyRecord>(item);
  }

  #linkToOriginal(run: Run): TransactWriteItem[] {
    const original = originalOf(run);
    const rerun = rerunOf(run);
    return original === undefined
      ? []
      : [this.rows.put(toItem(keys.rerunKey(run.tenant, original, rerun), rerun), ROW_IS_NEW)];
  }

  #putTriggers(runs: readonly { run: Run }[], trigger: Trigger): TransactWriteItem[] {
    return triggerItems(runs, trigger).map((item) => this.rows.put(item));
  }

  #putNewRun({ run, commit }: Pick<CreatedRun, 'run' | 'commit'>): TransactWriteItem[] {
    return [
      this.rows.put(runItem(run), ROW_IS_NEW),
      ...commitItems(run, commit, [], undefined).map((item) => this.rows.put(item, ROW_IS_NEW)),
      ...this.#linkToOriginal(run),
    ];
  }

  async commit(change: RunChange): Promise<CommitResult> {
    const { run, commit, creates } = change;
    const writesRun = needsRunRow(change.runBefore, run);
    const [commitItem, ...stepItems] = commitItems(
      run,
      commit,
      change.steps,
      writesRun ? undefined : progressOf(run),
    ) as [Item, ...Item[]];
    // Two commits after the same one have the same number, so the row of the commit alone decides which one is made.
    const chained = [
      this.rows.put(commitItem, ROW_IS_NEW),
      ...(writesRun ? [this.rows.put(runItem(run), runIsBefore(commit.seq))] : []),
    ];
    const beforeReceipts = [
      ...chained,
      ...stepItems.map((item) => this.rows.put(item)),
      ...change.steps.flatMap((write) => this.#takeLease(run, write)),
    ];
    const refusals = await this.#transact([
      ...beforeReceipts,
      ...change.receipts.map((write) => this.rows.put(receiptItem(write.receipt), receiptIsAs(write))),
      ...change.approvals.map(({ approval, expectedRevision }) =>
        this.rows.put(approvalItem(approval), expectedRevision === 'new' ? ROW_IS_NEW : revisionIs(expectedRevision)),
      ),
      ...change.outbox.map((entry) => this.rows.put(outboxItem(entry))),
      ...change.assignments.map(({ assignment, expectedRevision }) =>
        this.rows.put(assignmentItem(assignment), revisionIs(expectedRevision)),
      ),
      ...(creates ? [...this.#putNewRun(creates), ...this.#putTriggers([creates], creates.trigger)] : []),
      ...change.caps.map((write) => capWrite(this.rows.table, run.tenant, write)),
    ]);
    if (!refusals) return { outcome: 'committed' };
    if (refusals.slice(0, chained.length).some(isRefusal)) {
      return (await this.#wasOurs(change)) ? { outcome: 'committed' } : { outcome: 'lost' };
    }
    const heldAt = change.receipts.findIndex(
      (write, index) => write.expects !== 'ours' && isRefusal(refusals[beforeReceipts.length + index]),
    );
    const held = refusals[beforeReceipts.length + heldAt]?.Item;
    if (heldAt >= 0 && held) return { outcome: 'receipt_held', receipt: docOf(held) };
    const beforeCaps = refusals.length - change.caps.length;
    const refused = change.caps.filter((_cap, index) => isRefusal(refusals[beforeCaps + index]));
    return refused.length > 0 ? { outcome: 'no_slot', refused } : { outcome: 'lost' };
  }

  /** After a lost response, a retried commit is refused as if another worker had changed the run. The stored hash shows whose commit it is. */
  async #wasOurs({ run, commit }: RunChange): Promise<boolean> {
    const stored = await this.rows.get<Commit>(keys.commitKey(run.tenant, run.runId, commit.seq));
    return stored?.hash === commit.hash;
  }

  #takeLease({ tenant, runId }: Run, { step, takenLease: leaseVersion }: StepWrite): TransactWriteItem[] {
    if (leaseVersion === undefined) return [];
    return [this.rows.put(leaseItem(tenant, runId, step.index, { leaseVersion, status: 'taken' }))];
  }

  /**
   * The first renewal of a lease reads who holds it, and makes a row. A commit that takes the lease meanwhile writes this row,
   * too. So does one that takes it later, and further renewals need no read.
   */
  async renewLease(tenant: string, runId: string, step: RunningStep, expiresAt: string): Promise<boolean> {
    const { index, leaseVersion } = step;
    const item = leaseItem(tenant, runId, index, { leaseVersion, status: 'held', expiresAt });
    if (await this.rows.save(item, leaseIsHeldAt(leaseVersion))) return true;
    const now = (await this.runAndStep(tenant, runId, index))?.step;
    if (now?.status !== 'running' || now.leaseVersion !== leaseVersion) return false;
    return this.rows.save(item, leaseIsNotTaken(leaseVersion));
  }

  postponeRun({ tenant, runId, dueAt, sweeps }: DueRun, until: string): Promise<boolean> {
    const { sort } = keys.INDEXES.due;
    return this.rows.update(
      keys.runKey(tenant, runId),
      { [sort]: keys.dueSortKey(until, sweeps + 1) },
      dueTimeIs(keys.dueSortKey(dueAt, sweeps)),
    );
  }

  async recordSweep(tenant: string, sweep: SweepRecord): Promise<void> {
    await this.rows.save(toItem(keys.sweepKey(tenant), sweep));
  }

  async bumpOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean> {
    const bumped = { ...entry, attempts: entry.attempts + 1, dueAt };
    return this.rows.save(outboxItem(bumped), attemptsAre(entry.attempts));
  }

  failOutbox(entry: OutboxEntry, failed: NonNullable<OutboxEntry['failed']>): Promise<boolean> {
    const counted = { ...entry, attempts: countOf(entry) + 1, failed };
    return this.rows.save(outboxItem(counted), entryIsAsRead(entry));
  }

  redriveOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean> {
    return this.rows.save(outboxItem(redriven(entry, dueAt)), entryIsAsRead(entry));
  }

  async completeSeal(
    entryId: string | undefined,
    tenant: string,
    runId: string,
    evidence: EvidenceRecord,
    { logged, outboxEntries }: { logged: LogEntry; outboxEntries: OutboxEntry[] },
  ): Promise<void> {
    const { addendum } = logged;
    const key = addendum === undefined ? keys.evidenceKey(tenant, runId) : keys.addendumKey(tenant, runId, addendum);
    const refusals = await this.#transact([
      this.rows.put(toItem(key, evidence), ROW_IS_NEW),
      this.rows.put(toItem(keys.logEntryKey(tenant, dayOf(logged.sealedAt), logEntryId(logged)), logged)),
      ...outboxEntries.map((entry) => this.rows.put(outboxItem(entry))),
      ...(entryId === undefined ? [] : [this.rows.remove(keys.outboxKey(entryId))]),
    ]);
    // Sealed before: the first record stays, and only the outbox entry is deleted.
    if (refusals && entryId !== undefined) await this.completeOutboxEntry(entryId);
  }

  async clearSealDue({ sealDueAt: _due, ...run }: TerminalRun, entry?: OutboxEntry): Promise<boolean> {
    const [item, asRead] = [runItem(run), runIsAt(run.seq)];
    if (!entry) return this.rows.save(item, asRead);
    return !(await this.#transact([this.rows.put(item, asRead), this.rows.put(outboxItem(entry))]));
  }

  async completeExport(entryId: string, tenant: string, runId: string, artifacts: ArtifactReference[]): Promise<void> {
    const evidence = await this.evidence(tenant, runId);
    // Nothing else of the record ever changes, and every invocation adds the same references.
    const put =
      evidence && this.rows.put(toItem(keys.evidenceKey(tenant, runId), { ...evidence, artifacts }), ROW_EXISTS);
    await this.#transact([...(put ? [put] : []), this.rows.remove(keys.outboxKey(entryId))]);
  }

  async expireRun(tenant: string, runId: string, afterSeconds: number): Promise<void> {
    for await (const items of this.rows.pages(wholePartition(keys.runPartition(tenant, runId)))) {
      const expiring = items.map(keyOf).filter((key) => !keys.isEvidenceKey(key));
      for (let at = 0; at < expiring.length; at += ROWS_EXPIRED_AT_ONCE) {
        const some = expiring.slice(at, at + ROWS_EXPIRED_AT_ONCE);
        await Promise.all(some.map((key) => this.rows.update(key, { [keys.TTL_ATTRIBUTE]: afterSeconds }, ROW_EXISTS)));
      }
    }
  }

  async completeOutboxEntry(entryId: string): Promise<void> {
    await this.rows.delete(keys.outboxKey(entryId), this.pause);
  }

  async storeTaskToken(
    entryId: string,
    read: Approval,
    changes: Partial<Approval>,
    token?: WaitToken,
  ): ReturnType<RunStore['storeTaskToken']> {
    const { tenant, runId, approvalId, revision } = read;
    // In a separate row, so that readers of the approval do not get the token.
    const tokenKey = keys.taskTokenKey(tenant, runId, approvalId);
    const refusals = await this.#transact([
      this.rows.put(approvalItem({ ...read, ...changes, revision: revision + 1 }), revisionIs(revision)),
      this.rows.remove(keys.outboxKey(entryId)),
      ...(token ? [this.rows.put(toItem(tokenKey, token), tokenIsNotLaterThan(token.waitNumber))] : []),
    ]);
    if (!refusals) return 'stored';
    return isRefusal(refusals[0]) ? 'changed' : 'has_later_token';
  }

  async storeCard(
    claimed: StartApproval,
    read: Approval,
    changes: Partial<Approval>,
    start: StartApproval,
  ): ReturnType<RunStore['storeCard']> {
    const { revision } = read;
    const refusals = await this.#transact([
      this.rows.put(approvalItem({ ...read, ...changes, revision: revision + 1 }), revisionIs(revision)),
      this.rows.put(outboxItem(start), attemptsAre(claimed.attempts)),
    ]);
    if (!refusals) return 'stored';
    return isRefusal(refusals[0]) ? 'changed' : 'sent_again';
  }

  async cancelStart(entryId: string): Promise<void> {
    await this.rows.delete(keys.outboxKey(entryId), this.pause, CARD_IS_NOT_BEING_POSTED);
  }
}

/** A malformed entry may lack its count. */
const countOf = ({ attempts }: { attempts: unknown }): number => (typeof attempts === 'number' ? attempts : 0);
const entryIsAsRead = ({ attempts }: { attempts: unknown }) =>
  typeof attempts === 'number' ? attemptsAre(attempts) : ATTEMPTS_ARE_NOT_COUNTED;
