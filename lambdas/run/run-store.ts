import type { Assignment } from '../agents/assignment.ts';
import type { OutboxEntry, StartApproval } from '../outbox/outbox.ts';
import type { Approval, ClosedApprovalList } from './approval.ts';
import type { Commit, RunChange } from './commit.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import type { LogEntry } from './log-entry.ts';
import type { Receipt } from './receipt.ts';
import type { ActiveRun, Run, TerminalRun, Trigger } from './run.ts';
import type { RunFilter } from './run-filter.ts';
import type { CapWrite, Waiting } from './settings/caps.ts';
import type { RunningStep, Step } from './step.ts';

/** Creates the runs of a delivery in one transaction: idempotency records, runs with their first commit, triggers. */
export interface Ingest {
  /** The record of the delivery first. The others prevent that another event with the same content starts a second run. */
  records: IdempotencyRecord[];
  trigger: Trigger;
  runs: { run: ActiveRun; commit: Commit }[];
  /** Records that expired before this time may be replaced. TTL deletes them later, at no fixed time. */
  at: string;
  /** Counted in the same transaction. */
  cap?: CapWrite;
}

export type IngestResult =
  /** `expired`: the record of the same delivery, accepted so long ago that this one counts as new. */
  | { outcome: 'created'; expired?: IdempotencyRecord }
  | { outcome: 'duplicate'; record: IdempotencyRecord }
  /** Nothing was created: the cap has no free slot. */
  | { outcome: 'no_slot' };

export type CommitResult =
  | { outcome: 'committed' }
  /** Another worker has changed the run or claimed the step. */
  | { outcome: 'lost' }
  /** These caps have no free slot, or another run has the concurrency key. */
  | { outcome: 'no_slot'; refused: CapWrite[] }
  /** Another receipt has the key of the write (a success to reuse, an open intent), or it changed since it was read. */
  | { outcome: 'receipt_held'; receipt: Receipt };

export interface LoadedRun {
  run: Run;
  trigger: Trigger;
  /** The row of the trigger is missing. Then `trigger` has no fields and no payload. */
  triggerIsLost?: true;
  /** By index. Steps that no commit has reached have no row. */
  steps: Step[];
}

/** A row that evidence is made of. */
export type RunRow =
  | { kind: 'approval'; approval: Approval }
  /** Not part of evidence: traces have its times. */
  | { kind: 'assignment'; assignment: Assignment }
  | { kind: 'commit'; commit: Commit }
  /** The run is sealed. */
  | { kind: 'evidence'; evidence: EvidenceRecord }
  | { kind: 'run'; run: Run }
  | { kind: 'step'; step: Step }
  | { kind: 'trigger'; trigger: Trigger };

export interface Page<T> {
  items: T[];
  /** Where the next page starts; absent on the last one. */
  next?: string;
}

export interface RunPage extends Page<Run> {
  /** Where a page that starts after a run begins, by run id. */
  places: ReadonlyMap<string, string>;
  /** Set if runs were left out that do not match: everything accepted since this time was examined. */
  searchedBackTo?: string;
}

export interface RunCount {
  count: number;
  /** There are more. */
  atLeast?: true;
  /** The oldest of them. */
  oldest?: { runId: string; createdAt: string };
}

/** What a sweep found for a tenant. */
export interface SweepRecord {
  at: string;
  /** The number of rows that were due, and the earliest time of these. */
  due: number;
  oldestDueAt?: string;
  /** When each flag was last seen off, for some minutes after it is on again. */
  flagsOff?: Record<string, string>;
}

/** A page that must leave runs out examines at most this many: as many rows as one request of DynamoDB reads. */
export const EXAMINED_MAX = 100;
/** A page of a search in titles compares at most this many: with usual titles, what one request of DynamoDB reads. */
export const TITLES_EXAMINED_MAX = 5_000;

/** An entry of the due index. It may be out of date; later conditions decide. */
export type DueItem = { tenant: string; dueAt: string } & (
  | {
      kind: 'run';
      runId: string;
      /** How often the sweeper sent it since its last commit. */
      sweeps: number;
    }
  | { kind: 'outbox'; entryId: string }
  /** A slot of the schedule has come. */
  | { kind: 'schedule'; name: string }
);
export type DueRun = DueItem & { kind: 'run' };

export interface WaitingLine {
  waiting: Waiting[];
  running: Record<string, number>;
}

export interface EvidenceRecord {
  documentKey: string;
  envelopeKey: string;
  /** Where document and envelope are in an object with the bundles of several runs; absent if each is an object of its own. */
  within?: { document: number; envelope: number; envelopeBytes: number };
  sha256: string;
  /** Of the document. */
  sizeBytes: number;
  sealedAt: string;
  /** The artifacts that are stored. Absent if the stage exports none, and in records of earlier versions. */
  artifacts?: ArtifactReference[];
}

/** An object with values of a run, and the digest of its bytes. */
export interface ArtifactReference {
  name: 'enrichment' | 'completion' | 'values';
  key: string;
  /** Where it begins in an object with several artifacts of the run; absent if it is an object of its own. */
  offset?: number;
  sha256: string;
  sizeBytes: number;
}

/** A run that repeats another one: its trigger (`rerun`), or its steps from one on (`replay`). */
export interface Rerun {
  runId: string;
  kind: 'rerun' | 'replay';
  requestedBy: string;
  createdAt: string;
}

/** The original of a run that repeats another one. */
export const originalOf = ({ request }: Pick<Run, 'request'>): string | undefined =>
  request?.rerunOf ?? request?.replay?.of;

export const rerunOf = ({ runId, request, createdAt }: Run): Rerun => ({
  runId,
  kind: request?.replay ? 'replay' : 'rerun',
  requestedBy: request?.actor ?? '',
  createdAt,
});

export type AddendumRecord = EvidenceRecord & {
  /** The number of its commit. */
  seq: number;
};

export interface RunReads {
  load(tenant: string, runId: string): Promise<LoadedRun | undefined>;
  /** A run and one of its steps, without the trigger and the other steps: an agent renews a lease every 10 s. */
  runAndStep(tenant: string, runId: string, index: number): Promise<{ run: Run; step?: Step } | undefined>;
  /**
   * Every row that evidence is made of, commits and steps in order, strongly consistent. Reads page by page, because all
   * rows together may exceed the memory of a function.
   */
  everyRow(tenant: string, runId: string): AsyncIterable<RunRow>;
  /** The newest first. Makes at most two requests, so a page may have fewer runs than `limit` although more follow. */
  listRuns(tenant: string, query: RunFilter & { limit: number; after?: string }): Promise<RunPage>;
  /** How many runs match each of these filters, counted up to `max`. A filter has at most one field besides its times. */
  countRuns(tenant: string, filters: readonly RunFilter[], max: number): Promise<RunCount[]>;
  /**
   * The runs that exist, in any order, without their steps. Number, hash and time of the last commit, and the current step, may
   * be those of an earlier commit, at most as long as a lease lasts; so in lists.
   */
  someRuns(tenant: string, runIds: readonly string[]): Promise<Run[]>;
  /** The ids that start with these characters, in order, at most `limit`. */
  runIdsStartingWith(tenant: string, prefix: string, limit: number): Promise<string[]>;
  /** Commits after a sequence number, oldest first. */
  listCommits(tenant: string, runId: string, query: { after: number; limit: number }): Promise<Commit[]>;
  /** The runs that wait in `queued`, longest first, and the number of running runs by workspace. Eventually consistent. */
  waitingLine(tenant: string, limit: number, shards: number): Promise<WaitingLine>;
  receipts(tenant: string, keys: string[]): Promise<Receipt[]>;
  approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined>;
  /** The approvals that exist, in any order. */
  approvals(tenant: string, approvalIds: readonly string[]): Promise<Approval[]>;
  /** Open approvals of a tenant, oldest first. */
  pendingApprovals(tenant: string, query: { limit: number; after?: string }): Promise<Page<Approval>>;
  /** Closed approvals of a tenant, the last closed first. Those that an earlier version closed are not listed. */
  closedApprovals(
    tenant: string,
    query: { list: ClosedApprovalList; limit: number; after?: string },
  ): Promise<Page<Approval>>;
  /** Exact up to some ten thousand. */
  countPendingApprovals(tenant: string): Promise<number>;
  taskToken(tenant: string, runId: string, approvalId: string): Promise<string | undefined>;
  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined>;
  /** The runs that repeat this one, newest first. */
  reruns(tenant: string, runId: string, limit: number): Promise<Rerun[]>;
  /** The record of an idempotency key, also if it has expired. */
  idempotencyRecord(tenant: string, key: string): Promise<IdempotencyRecord | undefined>;
  /** The sealed addenda to the evidence of a run whose commits come after this one, in order. */
  addenda(tenant: string, runId: string, query: { after: number; limit: number }): Promise<AddendumRecord[]>;
  /** The due items of one shard, earliest first. A page has at most `limit` items. A run may be listed `DUE_TIME_STEP_MS` late. */
  due(shard: number, now: string, query: { limit: number; after?: string }): Promise<Page<DueItem>>;
  /** The outbox entries that exist, in any order. */
  outboxEntries(entryIds: string[]): Promise<OutboxEntry[]>;
  /** Outbox entries of a tenant, about `limit` of them. */
  openOutbox(tenant: string, limit: number): Promise<{ entries: OutboxEntry[]; complete: boolean }>;
  /** The last sweep. */
  lastSweep(tenant: string): Promise<SweepRecord | undefined>;
  /** Entries of a tenant that need an operator, at most `limit`. */
  stuckOutbox(tenant: string, limit: number): Promise<OutboxEntry[]>;
}

/** A row or a transaction that is too large throws `ROW_TOO_LARGE`, and nothing is written. */
export interface RunStore extends RunReads {
  ingest(ingest: Ingest): Promise<IngestResult>;
  commit(change: RunChange): Promise<CommitResult>;

  /**
   * Extends a lease. False if the step has another lease version or is not running. A holder that has ended its lease with
   * its own commit does not renew it any more.
   */
  renewLease(tenant: string, runId: string, step: RunningStep, expiresAt: string): Promise<boolean>;

  /**
   * After a message was sent for a due run: it is due again at `dueAt`, with one more sweep. False if the run was changed
   * or postponed since it was read. The next commit of the run sets its due time and resets the count.
   */
  postponeRun(due: DueRun, dueAt: string): Promise<boolean>;

  recordSweep(tenant: string, sweep: SweepRecord): Promise<void>;

  /** Counts an attempt to send an entry and sets its next one. False if it is gone or another sweep was first. */
  bumpOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean>;
  /** For an entry that can never be sent: it stays, with the reason, and is no longer due. False as above. */
  failOutbox(entry: OutboxEntry, failed: NonNullable<OutboxEntry['failed']>): Promise<boolean>;
  /** The entry is due at `dueAt` as if it were new. False if it is gone or was changed since it was read. */
  redriveOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean>;
  /**
   * After a bundle, or the addendum that `logged` names, is sealed: in one transaction, deletes the outbox entry if there is
   * one, and writes the evidence record, the entry of the daily log and further outbox entries.
   */
  completeSeal(
    entryId: string | undefined,
    tenant: string,
    runId: string,
    evidence: EvidenceRecord,
    besides: { logged: LogEntry; outboxEntries: OutboxEntry[] },
  ): Promise<void>;
  /**
   * The ended run is no longer due: it is sealed, or the entry that is stored in the same transaction seals it. False if the run
   * was changed since it was read. Then it is still due, and the next worker that finds it due does this.
   */
  clearSealDue(run: TerminalRun, entry?: OutboxEntry): Promise<boolean>;
  /** After all artifacts of a sealed run are stored: in one transaction, deletes the outbox entry and adds the references. */
  completeExport(entryId: string, tenant: string, runId: string, artifacts: ArtifactReference[]): Promise<void>;
  /**
   * Lets DynamoDB delete all rows of a sealed run after this time, except its evidence record and its receipts, which
   * prevent that an identical write is made twice.
   */
  expireRun(tenant: string, runId: string, afterSeconds: number): Promise<void>;
  /** Deletes an outbox entry whose effect has happened. */
  completeOutboxEntry(entryId: string): Promise<void>;

  /**
   * Changes an approval, stores the task token with which its execution waits, if there is a new one, and deletes the outbox
   * entry that started the execution. Nothing is written if the approval was `changed` since it was read, or if the
   * execution waits with a later token already.
   */
  storeTaskToken(
    entryId: string,
    read: Approval,
    changes: Partial<Approval>,
    token?: WaitToken,
  ): Promise<'stored' | 'changed' | 'has_later_token'>;

  /**
   * After the card of an approval is posted: changes the approval, and in the same transaction replaces the outbox entry with
   * which the card was claimed. Nothing is written if the approval was `changed` since it was read, or if the entry was sent
   * again since it was claimed.
   */
  storeCard(
    claimed: StartApproval,
    read: Approval,
    changes: Partial<Approval>,
    start: StartApproval,
  ): Promise<'stored' | 'changed' | 'sent_again'>;

  /**
   * Deletes the outbox entry that would start the execution of a closed approval. It stays while somebody may be posting the
   * card: they show the decision on the card and delete the entry, or the execution does it.
   */
  cancelStart(entryId: string): Promise<void>;
}

/** An execution waits with one token after the other, each with a larger number. Only the last one ends its wait. */
export interface WaitToken {
  taskToken: string;
  waitNumber: number;
}

/**
 * The due index is spread over this many partitions, so that no single one limits the runtime
 * (docs/cost-and-throughput.md). It may grow, but never shrink, because rows stay in their shard.
 */
export const DUE_SHARDS = 16;
/** The due times of runs in the index are multiples of this: an entry that does not change costs nothing. */
export const DUE_TIME_STEP_MS = 10_000;
/** A commit that sets a time some milliseconds later, as those of a running step do, then changes nothing in the index. */
export const dueTimeStep = (at: string, stepMs = DUE_TIME_STEP_MS): string =>
  new Date(Math.ceil(Date.parse(at) / stepMs) * stepMs).toISOString();
/** The same for outbox entries. Their key is computed from their id, so this number must never change. */
export const OUTBOX_SHARDS = 4;
