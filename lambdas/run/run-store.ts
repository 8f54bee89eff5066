import type { OutboxEntry } from '../outbox/outbox.ts';
import type { Approval } from './approval.ts';
import type { CapWrite, Waiting } from './caps.ts';
import type { Commit, RunChange } from './commit.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import type { LogEntry } from './log-entry.ts';
import type { Receipt } from './receipt.ts';
import type { ActiveRun, Run, RunStatus, Trigger } from './run.ts';
import type { RunningStep, Step } from './step.ts';

/** A delivery turned into runs: the idempotency record, the runs with their first commit and trigger, one transaction. */
export interface Ingest {
  /** The delivery's own record first; others only keep a second event about the same thing from starting a second run. */
  records: IdempotencyRecord[];
  trigger: Trigger;
  runs: { run: ActiveRun; commit: Commit }[];
  /** An idempotency record that expired before this time may be replaced; TTL deletion is never relied on. */
  at: string;
}

export type IngestResult =
  /** `expired`: the same delivery was accepted before, so long ago that it counts as new. */
  { outcome: 'created'; expired?: IdempotencyRecord } | { outcome: 'duplicate'; record: IdempotencyRecord };

export type CommitResult =
  | { outcome: 'committed' }
  /** Someone else moved the run or holds the step; this writer must stop. */
  | { outcome: 'lost' }
  /** There is no room under these caps, or another run holds the concurrency key. */
  | { outcome: 'no_slot'; refused: CapWrite[] }
  /** The write's key is held by another receipt (a success to reuse, an open intent), or it changed since it was read. */
  | { outcome: 'receipt_held'; receipt: Receipt };

export interface LoadedRun {
  run: Run;
  trigger: Trigger;
  /** The row of the trigger is gone, although it was written with the run; then `trigger` has no fields and no payload. */
  triggerIsLost?: true;
  /** In order; steps no commit has reached have no row. */
  steps: Step[];
}

/** A row of a run, as evidence is made of them. */
export type RunRow =
  | { kind: 'approval'; approval: Approval }
  | { kind: 'commit'; commit: Commit }
  | { kind: 'run'; run: Run }
  | { kind: 'step'; step: Step }
  | { kind: 'trigger'; trigger: Trigger };

export interface Page<T> {
  items: T[];
  /** Where the next page starts; absent on the last one. */
  next?: string;
}

/** What the due index points at: only a hint, the reader's own conditions decide. */
export type DueItem = { tenant: string; dueAt: string } & (
  | {
      kind: 'run';
      runId: string;
      /** How often the sweeper has sent it since its last commit: sent, and nothing came of it. */
      sweeps: number;
    }
  | { kind: 'outbox'; entryId: string }
);
export type DueRun = DueItem & { kind: 'run' };

export interface WaitingLine {
  waiting: Waiting[];
  running: Record<string, number>;
}

export interface EvidenceRecord {
  documentKey: string;
  envelopeKey: string;
  sha256: string;
  sizeBytes: number;
  sealedAt: string;
}

export interface RunReads {
  load(tenant: string, runId: string): Promise<LoadedRun | undefined>;
  /**
   * Every row that evidence is made of, commits and steps in order, read strongly consistent and only as fast as they are
   * taken: all of them together may be more than a function can hold.
   */
  everyRow(tenant: string, runId: string): AsyncIterable<RunRow>;
  listRuns(tenant: string, query: { status?: RunStatus; limit: number; after?: string }): Promise<Page<Run>>;
  /** Commits after a sequence number, oldest first. */
  listCommits(tenant: string, runId: string, query: { after: number; limit: number }): Promise<Commit[]>;
  /** The runs that wait in `queued`, longest first, and how many run in each workspace: hints for whom to wake. */
  waitingLine(tenant: string, limit: number, shards: number): Promise<WaitingLine>;
  receipts(tenant: string, keys: string[]): Promise<Receipt[]>;
  approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined>;
  /** Those of these that there are, in any order. */
  approvals(tenant: string, runId: string, approvalIds: string[]): Promise<Approval[]>;
  /** Open approvals of a tenant, those that wait longest first. */
  pendingApprovals(tenant: string, query: { limit: number; after?: string }): Promise<Page<Approval>>;
  /** Exact up to some ten thousand. */
  countPendingApprovals(tenant: string): Promise<number>;
  taskToken(tenant: string, runId: string, approvalId: string): Promise<string | undefined>;
  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined>;
  /** What is due in one shard, the longest due first; a page ends after `limit` items, or earlier. */
  due(shard: number, now: string, query: { limit: number; after?: string }): Promise<Page<DueItem>>;
  /** Those of these outbox entries that are still there, in any order. */
  outboxEntries(entryIds: string[]): Promise<OutboxEntry[]>;
  /** Entries of a tenant that an operator has to look at, at most `limit` of them. */
  stuckOutbox(tenant: string, limit: number): Promise<OutboxEntry[]>;
}

/** What does not fit, a row or all rows of one change together, throws `ROW_TOO_LARGE`, and nothing is written. */
export interface RunStore extends RunReads {
  ingest(ingest: Ingest): Promise<IngestResult>;
  commit(change: RunChange): Promise<CommitResult>;

  /** Prolongs a lease that is still held under this fencing number; false means it is lost. */
  renewLease(tenant: string, runId: string, step: RunningStep, expiresAt: string): Promise<boolean>;

  /**
   * A message was sent for a due run: it is due again at `dueAt`, with one more sweep counted. False if the run was changed
   * or postponed since it was read. The next commit of the run sets its own due time and forgets the count.
   */
  postponeRun(due: DueRun, dueAt: string): Promise<boolean>;

  /** Counts a send of a promised effect and sets its next look; false if it is gone or another sweep was first. */
  bumpOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean>;
  /** The entry can never be sent: it is kept, with the reason, and is not due any more. False as above. */
  failOutbox(entry: OutboxEntry, failed: NonNullable<OutboxEntry['failed']>): Promise<boolean>;
  /** The entry is due at `dueAt` as if it were new. False if it is gone or was changed since it was read. */
  redriveOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean>;
  /**
   * The evidence is sealed: the promise goes, where the bundle is recorded, its entry in the day's log, and what is still
   * to be done about it, together and once.
   */
  completeSeal(
    entryId: string,
    tenant: string,
    runId: string,
    evidence: EvidenceRecord,
    besides: { logged: LogEntry; outboxEntries: OutboxEntry[] },
  ): Promise<void>;
  /**
   * All rows of a sealed run but the record of its evidence are deleted some time after this. Receipts are not among them:
   * they keep an identical write from being made twice.
   */
  expireRun(tenant: string, runId: string, afterSeconds: number): Promise<void>;
  /** Any other promised effect happened. */
  completeOutboxEntry(entryId: string): Promise<void>;

  /**
   * The approval's execution holds a task token: the token is kept for its answer, and the promise to start goes.
   * False, and nothing of it, if the approval was changed since it was read.
   */
  storeTaskToken(entryId: string, read: Approval, changes: Partial<Approval>, taskToken: string): Promise<boolean>;
}

/**
 * The due index is spread over this many partitions, so that no single one limits the runtime
 * (docs/cost-and-throughput.md). It may grow, but never shrink: rows stay in the shard that was theirs when they were written.
 */
export const DUE_SHARDS = 16;
/** The same for outbox entries. Their key is found again from their id, so this number must never change. */
export const OUTBOX_SHARDS = 4;
