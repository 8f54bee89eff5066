import type { RunChange } from '../../lambdas/run/commit.ts';
import type { ErrorCode } from '../../lambdas/run/errors.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { CommitResult } from '../../lambdas/run/run-store.ts';
import { TERMINAL } from './invariants/lifecycle-table.ts';
import type { Snapshot } from './invariants/run-history.ts';
import type { Invocation } from './invocation.ts';
import type { Situation, Situations } from './situations.ts';

const REFUSALS: Partial<Record<ErrorCode, Situation>> = {
  APPROVAL_CLOSED: 'a decision comes too late',
  APPROVAL_STALE: 'a decision is about what has been changed since',
  APPROVAL_SELF: 'a maker tries to decide',
  APPROVAL_FORBIDDEN: 'somebody tries who may not decide',
};

/** Notices which situations a world has come into. */
export class Noticing {
  readonly #situations: Situations;
  readonly #isOutdated: (run: Run) => boolean;
  /** Runs that found no free slot when they should start. */
  readonly #waited = new Set<string>();

  constructor(situations: Situations, isOutdated: (run: Run) => boolean) {
    this.#situations = situations;
    this.#isOutdated = isOutdated;
  }

  result(by: Invocation, change: RunChange, outcome: CommitResult['outcome'], unchanged: boolean): void {
    const situations = this.#situations;
    if (outcome === 'committed' && unchanged) situations.meet('an own commit is recognised after a lost reply');
    if (outcome === 'lost') situations.meet('a race for a run is lost');
    if (outcome === 'lost' && change.approvals.some(({ expectedRevision }) => expectedRevision !== 'new')) {
      situations.meet('a race for an approval is lost');
    }
    if (outcome === 'lost' && by.remainingMs < 0) situations.meet("a zombie's commit is refused");
    if (outcome === 'receipt_held') situations.meet('a run waits for the identical write of another');
    if (outcome === 'no_slot') {
      situations.meet('there is no free slot');
      if (change.expectedSeq === 1) this.#waited.add(change.run.runId);
    }
  }

  change(change: RunChange, before: Snapshot, run: Run): void {
    const situations = this.#situations;
    const atWork = (index: number) => before.steps.find((step) => step.index === index)?.status === 'running';
    for (const { step } of change.steps) {
      if (step.status === 'running' && atWork(step.index)) situations.meet('a lease is taken over');
    }
    for (const { receipt } of change.receipts) {
      if (receipt.outcome === 'unknown') situations.meet('an outcome is unknown');
      if (receipt.outcome === 'succeeded' && receipt.recovered) situations.meet('a write is recovered by a probe');
    }
    this.#events(change, run);
    for (const { approval } of change.approvals) {
      if (approval.status === 'approved' && approval.asks === 'retry') {
        situations.meet('people agree that a write is sent again');
      }
      if (approval.status === 'approved' && approval.requirement.quorum > 1) situations.meet('two people agree');
      if (approval.votes.some(({ onBehalfOf }) => onBehalfOf))
        situations.meet('somebody decides in the place of another');
    }
    if (change.expectedSeq === 1 && this.#waited.has(run.runId)) {
      situations.meet('a run leaves the queue after waiting for a slot');
    }
    if (TERMINAL.has(run.status) && this.#isOutdated(run)) {
      situations.meet('an old run ends after a new version was published');
    }
  }

  #events({ commit }: RunChange, run: Run): void {
    const situations = this.#situations;
    for (const event of commit.events) {
      if (event.type === 'write.reused') situations.meet("another run's receipt is reused");
      if (event.type === 'run.resumed' && event.because === 'orphaned') situations.meet('an orphaned run is resumed');
      if (event.type === 'run.stop_requested' && run.status === 'running') {
        situations.meet('a stop waits for a write in flight');
      }
      if (event.type === 'policy.decided' && event.verdict === 'deny') situations.meet('policy denies a write');
      if (event.type === 'approval.stale') situations.meet('an approval is stale when it is to be used');
      if (event.type === 'approval.edited') situations.meet('a write is edited before it is approved');
      if (event.type === 'approval.expired') situations.meet('an approval expires');
      if (event.type === 'approval.canceled') situations.meet('an approval is closed with its run');
      if (event.type === 'approval.decided') situations.meet(`an approval is ${event.status}`);
      if (event.type === 'write.compensated') situations.meet(`an undo ends as ${event.outcome}`);
    }
  }

  refusal(code: ErrorCode): void {
    const situation = REFUSALS[code];
    if (situation) this.#situations.meet(situation);
  }
}
