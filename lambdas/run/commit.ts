import type { Assignment } from '../agents/assignment.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import type { Approval } from './approval.ts';
import { hashOf } from './canonical-json.ts';
import { digestSentences } from './events/digest-sentences.ts';
import type { CommitEvent } from './events/events.ts';
import type { Receipt } from './receipt.ts';
import type { ActiveRun, Run, Trigger } from './run.ts';
import type { CapWrite } from './settings/caps.ts';
import type { Step } from './step.ts';

export interface Commit {
  seq: number;
  prevHash: string;
  at: string;
  events: CommitEvent[];
  hash: string;
}

/** The first commit follows the identity of its run, so that commits of two runs cannot be joined into one chain. */
export function genesisHash(tenant: string, runId: string): string {
  return hashOf({ tenant, runId });
}

export function commitHash(commit: Omit<Commit, 'hash'>): string {
  const { seq, prevHash, at, events } = commit;
  // Over the events as evidence shows them, so that a bundle without sentences still proves its chain.
  return hashOf({ seq, prevHash, at, events: digestSentences(events) });
}

export function sealCommit(unsealed: Omit<Commit, 'hash'>): Commit {
  return { ...unsealed, hash: commitHash(unsealed) };
}

/**
 * A step as the commit leaves it. The writer has read the commit before this one, and with it every lease: a commit in
 * between, such as another claim, makes this one lost.
 */
export interface StepWrite {
  step: Step;
  /** The fencing number of the lease that this commit takes from its holder. Renewals of it are refused from then on. */
  takenLease?: number;
}

/**
 * A receipt to write. `free`: an intent, if no other write has the key. `ours`: the outcome of an intent of this run.
 * `asRead`: a change of a receipt that has not changed since it was read; it may be of another run.
 */
export interface ReceiptWrite {
  receipt: Receipt;
  expects: 'free' | 'ours' | { asRead: Receipt };
}

export interface ApprovalWrite {
  approval: Approval;
  expectedRevision: number | 'new';
}

/** An assignment that has not changed since it was read. */
export interface AssignmentWrite {
  assignment: Assignment;
  expectedRevision: number;
}

/** A new run with its first commit. */
export interface CreatedRun {
  run: ActiveRun;
  commit: Commit;
  trigger: Trigger;
}

/** Everything that one commit writes, in one transaction. */
export interface RunChange {
  /** The run as the writer has read it. A commit that another writer made since makes this one lost. */
  runBefore: Run;
  run: Run;
  commit: Commit;
  steps: StepWrite[];
  receipts: ReceiptWrite[];
  approvals: ApprovalWrite[];
  assignments: AssignmentWrite[];
  caps: CapWrite[];
  outbox: OutboxEntry[];
  /** The run that rolls this one back. */
  creates?: CreatedRun;
}
