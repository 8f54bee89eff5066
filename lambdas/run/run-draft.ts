import type { Assignment } from '../agents/assignment.ts';
import { newOutboxEntry, type OutboxEntry } from '../outbox/outbox.ts';
import type { Approval, ApprovalStatus, OpenApprovalStatus } from './approval.ts';
import {
  type ApprovalWrite,
  type AssignmentWrite,
  type CreatedRun,
  type ReceiptWrite,
  type RunChange,
  type StepWrite,
  sealCommit,
} from './commit.ts';
import type { RecordedError } from './errors.ts';
import type { CommitEvent } from './events/events.ts';
import type { By } from './events/run-events.ts';
import type { Receipt } from './receipt.ts';
import type { ActiveRun, Run, RunStatus, TerminalRun } from './run.ts';
import type { CapWrite } from './settings/caps.ts';
import { assertOnlyChangedAfterEnd } from './statuses/ended-run.ts';
import { ALLOWED_TRANSITIONS, transition } from './statuses/transitions.ts';
import type { Step, Steps } from './step.ts';

export type { By } from './events/run-events.ts';

/** Collects the changes of one commit. */
export class RunDraft {
  readonly at: string;
  readonly #before: { run: Run; steps: Steps };
  readonly #steps: Map<number, Step>;
  readonly #changedSteps = new Set<number>();
  readonly #givenUp = new Set<number>();
  readonly #events: CommitEvent[] = [];
  readonly #receipts: ReceiptWrite[] = [];
  readonly #approvals: ApprovalWrite[] = [];
  readonly #assignments: AssignmentWrite[] = [];
  #caps: CapWrite[] = [];
  readonly #outbox: OutboxEntry[] = [];
  readonly #held: ReadonlyMap<string, Receipt>;
  #run: Run;
  #cause?: By;
  #creates?: CreatedRun;

  /** `held`: receipts that have the keys which an earlier draft of this commit needed. */
  constructor(before: { run: Run; steps: Steps }, at: string, held: ReadonlyMap<string, Receipt> = new Map()) {
    this.#held = held;
    this.#before = before;
    this.#run = before.run;
    this.#steps = new Map(before.steps);
    this.at = at;
  }

  get run(): Run {
    return this.#run;
  }

  get before(): Run {
    return this.#before.run;
  }

  /** The steps after the changes in this draft. */
  get steps(): Steps {
    return this.#steps;
  }

  get events(): readonly CommitEvent[] {
    return this.#events;
  }

  /** True if there is nothing to commit. */
  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  /** Changes the status of the run, through `running` if there is no direct transition. Throws if there is none. */
  move(to: RunStatus, by: By, error?: RecordedError): this {
    if (this.#run.status === to) return this;
    const allowed = ALLOWED_TRANSITIONS[(this.#run as ActiveRun).status];
    if (allowed && !allowed.includes(to) && allowed.includes('running')) this.move('running', by);
    const moved = transition(this.#run, to, { at: this.at, ...by }, error);
    if (!moved.ok) throw moved.refusal;
    this.#run = moved.run;
    this.#events.push(moved.event);
    return this;
  }

  /** Sets who caused this commit, if not the worker. */
  causedBy(by: By): this {
    this.#cause = by;
    return this;
  }

  get cause(): By | undefined {
    return this.#cause;
  }

  /** Sets fields of an active run. */
  note(facts: Partial<Omit<ActiveRun, 'status' | 'seq' | 'headHash' | 'runId' | 'tenant'>>): this {
    this.#run = { ...this.#run, ...facts } as Run;
    return this;
  }

  /** Records a person whose input may be part of later writes. */
  addMaker(person: string): this {
    const { makers = [] } = this.#run;
    return makers.includes(person) ? this : this.note({ makers: [...makers, person] });
  }

  record(...events: CommitEvent[]): this {
    this.#events.push(...events);
    return this;
  }

  put(step: Step): this {
    this.#steps.set(step.index, step);
    this.#changedSteps.add(step.index);
    return this;
  }

  /** The holder of this step's lease makes this commit and ends the lease itself, so nobody will renew it. */
  giveUpLease(index: number): this {
    this.#givenUp.add(index);
    return this;
  }

  /** The receipt with a key after the changes in this draft, or as it was read. */
  receipt(key: string): Receipt | undefined {
    return this.#receipts.find(({ receipt }) => receipt.key === key)?.receipt ?? this.#held.get(key);
  }

  putReceipt(receipt: Receipt, expects: ReceiptWrite['expects']): this {
    this.#receipts.push({ receipt, expects });
    return this;
  }

  openApproval(approval: Approval): this {
    this.#approvals.push({ approval, expectedRevision: 'new' });
    return this;
  }

  /** An approval that this draft changes. */
  approval(approvalId: string): Approval | undefined {
    return this.#approvals.find(({ approval }) => approval.approvalId === approvalId)?.approval;
  }

  /**
   * An approval as it is after this commit; the commit fails if it was changed meanwhile. An outbox entry updates its
   * card and, if needed, its state machine.
   */
  changeApproval(read: Approval, changes: Partial<Approval>): Approval {
    const drafted = this.#approvals.find(({ approval }) => approval.approvalId === read.approvalId);
    if (drafted) {
      // This commit already writes the row.
      drafted.approval = { ...drafted.approval, ...changes };
      return drafted.approval;
    }
    const approval = { ...read, ...changes, revision: read.revision + 1 };
    const { tenant, runId, approvalId, revision } = approval;
    this.#approvals.push({ approval, expectedRevision: read.revision });
    this.enqueue(newOutboxEntry({ kind: 'follow_approval', tenant, runId, approvalId, revision }, this.at));
    return approval;
  }

  /** An approval that is decided, has expired or is canceled. */
  closeApproval(
    read: Approval,
    ending: Partial<Approval> & { status: Exclude<ApprovalStatus, OpenApprovalStatus> },
  ): Approval {
    return this.changeApproval(read, { ...ending, decidedAt: this.at });
  }

  /** An assignment as it is after this commit; the commit fails if it was changed meanwhile. */
  changeAssignment(read: Assignment, changes: Partial<Assignment>): this {
    this.#assignments.push({
      assignment: { ...read, ...changes, revision: read.revision + 1 },
      expectedRevision: read.revision,
    });
    return this;
  }

  cap(...writes: CapWrite[]): this {
    this.#caps.push(...writes);
    return this;
  }

  /** Removes cap writes from this draft. */
  waiveCap(kind: CapWrite['kind']): this {
    this.#caps = this.#caps.filter((write) => write.kind !== kind);
    return this;
  }

  /** The run has ended: it stays due until it is sealed. */
  requireSeal(sealDueAt: string): this {
    this.#run = { ...(this.#run as TerminalRun), sealDueAt };
    return this;
  }

  /** Creates another run in the same transaction. */
  create(created: CreatedRun): this {
    this.#creates = created;
    return this;
  }

  enqueue(entry: OutboxEntry): this {
    this.#outbox.push(entry);
    return this;
  }

  #takenLease(index: number): Pick<StepWrite, 'takenLease'> {
    const [was, is] = [this.#before.steps.get(index), this.#steps.get(index)];
    const isHeld = is?.status === 'running' && is.leaseVersion === was?.leaseVersion;
    return was?.status !== 'running' || isHeld || this.#givenUp.has(index) ? {} : { takenLease: was.leaseVersion };
  }

  seal(): RunChange {
    const { run } = this.#before;
    assertOnlyChangedAfterEnd(run, this.#run, { steps: this.#changedSteps.size, approvals: this.#approvals.length });
    const commit = sealCommit({ seq: run.seq + 1, prevHash: run.headHash, at: this.at, events: this.#events });
    return {
      runBefore: run,
      run: { ...this.#run, seq: commit.seq, headHash: commit.hash, updatedAt: this.at },
      commit,
      steps: [...this.#changedSteps].map((index) => ({
        step: this.#steps.get(index) as Step,
        ...this.#takenLease(index),
      })),
      receipts: this.#receipts,
      approvals: this.#approvals,
      assignments: this.#assignments,
      caps: this.#caps,
      outbox: this.#outbox,
      ...(this.#creates && { creates: this.#creates }),
    };
  }
}
