import type { RunChange } from '../../lambdas/run/commit.ts';
import type { ErrorCode } from '../../lambdas/run/errors.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { CommitResult } from '../../lambdas/run/run-store.ts';
import type { Invocation } from './environment/invocation.ts';
import { TERMINAL } from './invariants/lifecycle-table.ts';
import type { Snapshot } from './invariants/run-history.ts';
import type { Situation, Situations } from './situations.ts';

const REFUSALS: Partial<Record<ErrorCode, Situation>> = {
  APPROVAL_CLOSED: 'a decision arrives too late',
  APPROVAL_STALE: 'a decision is about an outdated write',
  APPROVAL_SELF: 'a maker tries to decide',
  APPROVAL_FORBIDDEN: 'a person without the right tries to decide',
};

/** Finds out which situations occurred, from commits and their results. */
export class SituationDetector {
  readonly #situations: Situations;
  readonly #isOutdated: (run: Run) => boolean;
  /** Runs that had no free slot when they were due to start. */
  readonly #waitedForSlot = new Set<string>();

  constructor(situations: Situations, isOutdated: (run: Run) => boolean) {
    this.#situations = situations;
    this.#isOutdated = isOutdated;
  }

  committing(by: Invocation, change: RunChange, outcome: CommitResult['outcome'], unchanged: boolean): void {
    const situations = this.#situations;
    if (outcome === 'committed' && unchanged)
      situations.record('a worker recognizes its own commit after a lost reply');
    if (outcome === 'lost') situations.record('another invocation has changed the run first');
    if (outcome === 'lost' && change.approvals.some(({ expectedRevision }) => expectedRevision !== 'new')) {
      situations.record('another invocation has changed the approval first');
    }
    if (outcome === 'lost' && by.remainingMs < 0) situations.record("a stale worker's commit is refused");
    if (outcome === 'receipt_held') situations.record('a run waits for the identical write of another');
    if (outcome === 'no_slot') {
      situations.record('no slot is free');
      if (change.runBefore.seq === 1) this.#waitedForSlot.add(change.run.runId);
    }
  }

  committed(change: RunChange, before: Snapshot, run: Run): void {
    const situations = this.#situations;
    for (const { step } of change.steps) {
      const was = before.steps.find(({ index }) => index === step.index);
      const isTakenOver = was?.status === 'running' && step.leaseVersion > was.leaseVersion;
      if (step.status === 'running' && isTakenOver) situations.record('a lease is taken over');
    }
    for (const { receipt } of change.receipts) {
      if (receipt.outcome === 'unknown') situations.record('an outcome is unknown');
      if (receipt.outcome === 'succeeded' && receipt.recovered) situations.record('a write is recovered by a probe');
    }
    this.#events(change, run);
    for (const { approval } of change.approvals) {
      if (approval.status === 'approved' && approval.asks === 'retry') {
        situations.record('people approve that a write is sent again');
      }
      if (approval.status === 'approved' && approval.requirement.quorum > 1) situations.record('two people approve');
      if (approval.votes.some(({ onBehalfOf }) => onBehalfOf)) situations.record('a delegate decides');
    }
    if (change.runBefore.seq === 1 && this.#waitedForSlot.has(run.runId)) {
      situations.record('a run leaves the queue after waiting for a slot');
    }
    if (TERMINAL.has(run.status) && this.#isOutdated(run)) {
      situations.record('an old run ends after a new version was published');
    }
  }

  #events({ commit }: RunChange, run: Run): void {
    const situations = this.#situations;
    for (const event of commit.events) {
      if (event.type === 'write.reused') situations.record("another run's receipt is reused");
      if (event.type === 'run.resumed' && event.because === 'orphaned') situations.record('an orphaned run is resumed');
      if (event.type === 'run.stop_requested' && run.status === 'running') {
        situations.record('a stop waits for a write in flight');
      }
      if (event.type === 'policy.decided' && event.verdict === 'deny') situations.record('policy denies a write');
      if (event.type === 'approval.stale') situations.record('an approval is stale before its write');
      if (event.type === 'approval.edited') situations.record('a write is edited before it is approved');
      if (event.type === 'approval.expired') situations.record('an approval expires');
      if (event.type === 'approval.canceled') situations.record('an approval is canceled with its run');
      if (event.type === 'approval.decided') situations.record(`an approval is ${event.status}`);
      if (event.type === 'write.compensated') situations.record(`an undo ends as ${event.outcome}`);
    }
  }

  refused(code: ErrorCode): void {
    const situation = REFUSALS[code];
    if (situation) this.#situations.record(situation);
  }
}
