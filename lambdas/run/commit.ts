import type { Approval } from '../approval/approval.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import { hashOf } from './canonical-json.ts';
import { CountersignError, type RecordedError } from './errors.ts';
import type { Receipt } from './receipt.ts';
import type { ActiveRun, Run, RunStatus } from './run.ts';
import type { Step } from './step.ts';
import { type Initiator, type StatusChanged, transition } from './transitions.ts';

/** Events carry metadata only (ids, statuses, hashes, sizes, reasons), never payloads: evidence includes them whole. */
export type CommitEvent =
  | {
      type: 'run.accepted';
      automation: string;
      workflow: { name: string; version: number };
      source: string;
      event: string;
      key: string;
      triggerHash: string;
    }
  | { type: 'run.enriched'; enrichmentHash: string }
  | StatusChanged
  | { type: 'step.ready'; step: string; index: number }
  | {
      type: 'step.claimed';
      step: string;
      index: number;
      tool: string;
      owner: string;
      leaseVersion: number;
      leaseExpiresAt: string;
      attempt: number;
      inputHash: string;
    }
  | { type: 'step.succeeded'; step: string; index: number; outputHash: string; skipped?: true }
  | { type: 'step.retry_scheduled'; step: string; index: number; retryAt: string; error: RecordedError }
  | { type: 'step.failed'; step: string; index: number; error: RecordedError }
  | { type: 'write.intended'; step: string; receiptKey: string; tool: string; target: string; requestHash: string }
  | { type: 'write.settled'; step: string; receiptKey: string; outcome: Receipt['outcome']; recovered?: true }
  | { type: 'write.reused'; step: string; receiptKey: string; firstRunId: string }
  | { type: 'approval.requested'; step: string; approvalId: string; expiresAt: string }
  | { type: 'approval.expired'; step: string; approvalId: string };

export interface Commit {
  seq: number;
  prevHash: string;
  at: string;
  events: CommitEvent[];
  hash: string;
}

/** The first commit points at its run's identity, so commits of two runs cannot be spliced into one chain. */
export function genesisHash(tenant: string, runId: string): string {
  return hashOf({ tenant, runId });
}

export function commitHash(commit: Omit<Commit, 'hash'>): string {
  const { seq, prevHash, at, events } = commit;
  return hashOf({ seq, prevHash, at, events });
}

/** Checks that commits are whole, in order and unedited, from the genesis to the run's head. */
export function assertChain(run: Pick<Run, 'tenant' | 'runId' | 'seq' | 'headHash'>, commits: readonly Commit[]): void {
  let prevHash = genesisHash(run.tenant, run.runId);
  for (const [index, commit] of commits.entries()) {
    const seq = index + 1;
    if (commit.seq !== seq) throw broken(run, `commit ${seq} is missing or out of order (found ${commit.seq})`);
    if (commit.prevHash !== prevHash) throw broken(run, `commit ${seq} does not follow the one before it`);
    if (commitHash(commit) !== commit.hash) throw broken(run, `commit ${seq} was edited`);
    prevHash = commit.hash;
  }
  if (commits.length !== run.seq || prevHash !== run.headHash) {
    throw broken(run, `the chain ends at commit ${commits.length}, the run's head is ${run.seq}`);
  }
}

function broken(run: Pick<Run, 'runId'>, what: string): CountersignError {
  return new CountersignError('CHAIN_BROKEN', `run ${run.runId}: ${what}`);
}

/** A step row to write: a new one, or one still held under the fencing number its writer knows. */
export interface StepWrite {
  step: Step;
  expectedLeaseVersion: number | 'new';
}

/** A receipt to write: an intent where no other write holds the key, or the outcome of an intent still ours. */
export interface ReceiptWrite {
  receipt: Receipt;
  expects: 'free' | 'ours';
}

export interface ApprovalWrite {
  approval: Approval;
  expectedStatus: Approval['status'] | 'new';
}

/** Everything one commit writes, as one transaction or not at all. */
export interface RunChange {
  /** 0 when the commit creates the run. */
  expectedSeq: number;
  run: Run;
  commit: Commit;
  steps: StepWrite[];
  receipts: ReceiptWrite[];
  approvals: ApprovalWrite[];
  outbox: OutboxEntry[];
}

/** Collects what happens to a run until it is sealed into one commit. */
export class RunDraft {
  #run: Run;
  readonly #before: Run;
  readonly #at: string;
  readonly #events: CommitEvent[] = [];
  readonly #steps: StepWrite[] = [];
  readonly #receipts: ReceiptWrite[] = [];
  readonly #approvals: ApprovalWrite[] = [];
  readonly #outbox: OutboxEntry[] = [];

  constructor(before: Run, at: string) {
    this.#before = before;
    this.#run = before;
    this.#at = at;
  }

  get at(): string {
    return this.#at;
  }

  get run(): Run {
    return this.#run;
  }

  /** Moves the run to another status; an edge that does not exist throws its refusal. */
  move(to: RunStatus, by: { initiator: Initiator; actor: string; reason?: string }, error?: RecordedError): this {
    const moved = transition(this.#run, to, { at: this.#at, ...by }, error);
    if (!moved.ok) throw moved.refusal;
    this.#run = moved.run;
    this.#events.push(moved.event);
    return this;
  }

  /** Facts that go with an active run: when to look again, what enrichment found. */
  note(facts: Partial<Pick<ActiveRun, 'dueAt' | 'startedAt' | 'enrichment'>>): this {
    this.#run = { ...this.#run, ...facts } as Run;
    return this;
  }

  record(...events: CommitEvent[]): this {
    this.#events.push(...events);
    return this;
  }

  writeStep(step: Step, expectedLeaseVersion: StepWrite['expectedLeaseVersion']): this {
    this.#steps.push({ step, expectedLeaseVersion });
    return this;
  }

  writeReceipt(receipt: Receipt, expects: ReceiptWrite['expects']): this {
    this.#receipts.push({ receipt, expects });
    return this;
  }

  writeApproval(approval: Approval, expectedStatus: ApprovalWrite['expectedStatus']): this {
    this.#approvals.push({ approval, expectedStatus });
    return this;
  }

  promise(...entries: OutboxEntry[]): this {
    this.#outbox.push(...entries);
    return this;
  }

  seal(): RunChange {
    const seq = this.#before.seq + 1;
    const unsealed = { seq, prevHash: this.#before.headHash, at: this.#at, events: this.#events };
    const commit: Commit = { ...unsealed, hash: commitHash(unsealed) };
    return {
      expectedSeq: this.#before.seq,
      run: { ...this.#run, seq, headHash: commit.hash, updatedAt: this.#at },
      commit,
      steps: this.#steps,
      receipts: this.#receipts,
      approvals: this.#approvals,
      outbox: this.#outbox,
    };
  }
}
