import type { Risk } from '../connectors/connector.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import type { PolicyDecision } from '../policy/policy.ts';
import type { DerivedTarget } from '../workflow/model-flow.ts';
import type { Approval, Channel, GateReason, Vote } from './approval.ts';
import type { RecordedPhase } from './approval-phase.ts';
import { hashOf } from './canonical-json.ts';
import type { CapWrite } from './caps.ts';
import { CountersignError, type RecordedError } from './errors.ts';
import { withoutText } from './free-text.ts';
import type { Receipt } from './receipt.ts';
import type { Compensation, Resumed, Run } from './run.ts';
import type { Step } from './step.ts';
import type { Initiator, StatusChanged } from './transitions.ts';

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
  | {
      type: 'run.stop_requested';
      kind: 'cancel' | 'pause' | 'rollback';
      initiator: Initiator;
      actor: string;
      reason?: string;
    }
  | ({ type: 'run.resumed'; resumeCount: number } & Resumed)
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
  | { type: 'step.waiting'; step: string; index: number; awaits: 'time' | 'signal'; signal?: string; until: string }
  | {
      type: 'step.signaled';
      step: string;
      index: number;
      signal: string;
      /** Where it came in, and how its sender tells it from others. */
      source: string;
      eventId: string;
      actor: string;
      payloadHash: string;
    }
  | { type: 'step.retry_scheduled'; step: string; index: number; retryAt: string; error: RecordedError }
  | { type: 'step.retry_requested'; step: string; index: number; actor: string }
  | { type: 'step.failed'; step: string; index: number; error: RecordedError }
  | { type: 'step.canceled'; step: string; index: number }
  | { type: 'write.intended'; step: string; receiptKey: string; tool: string; target: string; requestHash: string }
  | { type: 'write.settled'; step: string; receiptKey: string; outcome: Receipt['outcome']; recovered?: true }
  | { type: 'write.reversed'; step: string; receiptKey: string; reversedBy: string }
  | { type: 'write.compensated'; step: string; receiptKey: string; outcome: Compensation['outcome']; reason?: string }
  | { type: 'write.reused'; step: string; receiptKey: string; firstRunId: string }
  | PolicyDecided
  | {
      type: 'approval.requested';
      step: string;
      approvalId: string;
      asks: GateReason;
      actionHash: string;
      tier: Risk;
      quorum: number;
      groups: string[][];
      /** Operators may decide too. */
      operators?: true;
      makers: string[];
      slaAt: string;
      expiresAt: string;
      /** What else of its phase it covers, and what will be asked about separately. */
      phase?: RecordedPhase;
    }
  /** The write of a step waits for, or goes on with, the approval that another write of its phase stopped for. */
  | { type: 'approval.covered'; step: string; index: number; approvalId: string }
  | { type: 'approval.auto_approved'; step: string; confidence: number; threshold: number }
  | ({ type: 'approval.voted'; approvalId: string; step: string; reasonHash?: string } & Omit<Vote, 'reason' | 'at'>)
  | {
      type: 'approval.edited';
      step: string;
      approvalId: string;
      person: string;
      via: Channel;
      fields: string[];
      previousHash: string;
      actionHash: string;
      /** Of the edited write alone, where the approval covers a phase. */
      leadHash?: string;
      /** What is asked for from now on, and of whom not. */
      tier: Risk;
      quorum: number;
      groups: string[][];
      makers: string[];
    }
  | { type: 'approval.decided'; step: string; approvalId: string; status: 'approved' | 'rejected'; people: string[] }
  | {
      type: 'approval.stale';
      step: string;
      index: number;
      approvalId: string;
      because: 'changed' | 'expired' | 'voters' | 'used';
      approvedHash: string;
      actionHash: string;
    }
  | { type: 'approval.reminded'; step: string; approvalId: string }
  /** Its SLA has passed and others were called; it can still be decided. Older runs have it as `approval.escalated`. */
  | { type: 'approval.overdue' | 'approval.escalated'; step: string; approvalId: string }
  | { type: 'approval.expired'; step: string; approvalId: string }
  | { type: 'approval.canceled'; step: string; approvalId: string };

export interface PolicyDecided {
  type: 'policy.decided';
  step: string;
  index: number;
  tool: string;
  target: string;
  verdict: PolicyDecision['verdict'];
  policyHash: string;
  policies: string[];
  reasons: string[];
  /** Why policy could not decide. */
  message?: string;
  actionHash: string;
  /** What of the target derives from a model. */
  derived?: DerivedTarget[];
  tier?: Risk;
  quorum?: number;
  groups?: string[][];
}

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
  // Over what evidence shows of the events: a bundle proves its chain without anybody's text in it.
  return hashOf({ seq, prevHash, at, events: withoutText(events) });
}

export function sealCommit(unsealed: Omit<Commit, 'hash'>): Commit {
  return { ...unsealed, hash: commitHash(unsealed) };
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

/** A step row to write: a new one, or one still under the fencing number its writer knows. */
export interface StepWrite {
  step: Step;
  expectedLeaseVersion: number | 'new';
}

/**
 * A receipt to write: an intent where no other write holds the key, the outcome of an intent still ours, or a change of
 * one that is still just as it was read (someone else's too: that a run rests on it).
 */
export interface ReceiptWrite {
  receipt: Receipt;
  expects: 'free' | 'ours' | { asRead: Receipt };
}

export interface ApprovalWrite {
  approval: Approval;
  expectedRevision: number | 'new';
}

/** Everything one commit writes, as one transaction or not at all. */
export interface RunChange {
  expectedSeq: number;
  run: Run;
  commit: Commit;
  steps: StepWrite[];
  receipts: ReceiptWrite[];
  approvals: ApprovalWrite[];
  caps: CapWrite[];
  outbox: OutboxEntry[];
}
