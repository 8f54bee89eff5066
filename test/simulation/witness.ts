import type { Clock } from '../../lambdas/entry/ports.ts';
import type { TenantSettings } from '../../lambdas/run/caps.ts';
import type { RunChange } from '../../lambdas/run/commit.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { CommitResult, Ingest, IngestResult } from '../../lambdas/run/run-store.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { MemoryRunStore } from '../fakes/memory-run-store.ts';
import { InjectedFault } from './faults.ts';
import { DeliveriesJudge } from './invariants/deliveries.ts';
import { EffectsJudge } from './invariants/effects.ts';
import { TERMINAL } from './invariants/lifecycle-table.ts';
import { PlacesJudge } from './invariants/places.ts';
import type { Report } from './invariants/report.ts';
import { judgeHistory, judgeSuccess, type Snapshot, snapshot } from './invariants/run-history.ts';
import type { Invocation } from './invocation.ts';
import type { OutsideRequest } from './simulated-outside.ts';
import { Situations } from './situations.ts';

/** Sees everything that happens in a world, at the moment it takes effect, and reports what must never be. */
export class Witness {
  readonly situations = new Situations();
  readonly effects: EffectsJudge;
  readonly deliveries: DeliveriesJudge;
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #places: PlacesJudge;
  readonly #workflow: (run: Run) => Workflow | undefined;
  readonly #onChange: (run: Run) => void;
  readonly #isOutdated: (run: Run) => boolean;
  /** Runs that found no room when they were to start. */
  readonly #waited = new Set<string>();

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: {
      settings: (tenant: string) => TenantSettings;
      workflow: (run: Run) => Workflow | undefined;
      clocksAreSane: boolean;
      /** Nobody tells a run to try again at once. */
      nobodyHurries: boolean;
      time: Clock;
      skewMs: number;
      isOutdated: (run: Run) => boolean;
      onChange: (run: Run) => void;
    },
  ) {
    this.#report = report;
    this.#store = store;
    this.#workflow = known.workflow;
    this.#onChange = known.onChange;
    this.#isOutdated = known.isOutdated;
    this.effects = new EffectsJudge(report, store, known);
    this.deliveries = new DeliveriesJudge(report, store);
    this.#places = new PlacesJudge(report, store, known.settings, known.workflow);
  }

  committing(by: Invocation, change: RunChange, commit: () => Promise<CommitResult>): Promise<CommitResult> {
    const { tenant, runId } = change.run;
    const before = snapshot(this.#store, tenant, runId);
    const result = commit();
    const after = snapshot(this.#store, tenant, runId);
    const workflow = before.run && this.#workflow(before.run);
    judgeHistory(this.#report, this.#store, workflow, before, after);
    result.then(
      ({ outcome }) => this.#noteResult(by, change, outcome, after.run === before.run),
      () => {},
    );
    if (!after.run || after.run === before.run) return result;
    judgeSuccess(this.#report, workflow, after);
    this.#places.committed(before.run, after.run);
    for (const { receipt } of change.receipts) this.effects.committed(receipt);
    if (TERMINAL.has(after.run.status) && ![...this.#store.inside.outbox()].some((entry) => entry.runId === runId)) {
      this.#report('an ended run is promised its evidence', `${runId}, ended by ${by.id}`);
    }
    this.#noteChange(change, before, after.run);
    this.#onChange(after.run);
    return result;
  }

  #noteResult(by: Invocation, change: RunChange, outcome: CommitResult['outcome'], unchanged: boolean): void {
    const { situations } = this;
    if (outcome === 'committed' && unchanged) situations.meet('an own commit is recognised after a lost reply');
    if (outcome === 'lost') situations.meet('a race for a run is lost');
    if (outcome === 'lost' && by.remainingMs < 0) situations.meet("a zombie's commit is refused");
    if (outcome === 'receipt_held') situations.meet('a run waits for the identical write of another');
    if (outcome === 'no_room') {
      situations.meet('there is no room under a cap');
      if (change.expectedSeq === 1) this.#waited.add(change.run.runId);
    }
  }

  #noteChange(change: RunChange, before: Snapshot, run: Run): void {
    const { situations } = this;
    const atWork = (index: number) => before.steps.find((step) => step.index === index)?.status === 'running';
    for (const { step } of change.steps) {
      if (step.status === 'running' && atWork(step.index)) situations.meet('a lease is taken over');
    }
    for (const { receipt } of change.receipts) {
      if (receipt.outcome === 'unknown') situations.meet('an outcome is unknown');
      if (receipt.outcome === 'succeeded' && receipt.recovered) situations.meet('a write is recovered by a probe');
    }
    for (const { type } of change.commit.events) {
      if (type === 'write.reused') situations.meet("another run's receipt is reused");
      if (type === 'run.stop_requested' && run.status === 'running')
        situations.meet('a stop waits for a write in flight');
    }
    if (change.expectedSeq === 1 && this.#waited.has(run.runId)) {
      situations.meet('a run leaves the queue after waiting for room');
    }
    if (TERMINAL.has(run.status) && this.#isOutdated(run)) {
      situations.meet('an old run ends after a new version was published');
    }
  }

  async ingesting(ingest: Ingest, write: () => Promise<IngestResult>): Promise<IngestResult> {
    const known = new Set([...this.#store.inside.runs()].map(({ tenant, runId }) => `${tenant} ${runId}`));
    const result = write();
    const created = [...this.#store.inside.runs()].filter(({ tenant, runId }) => !known.has(`${tenant} ${runId}`));
    for (const run of created) {
      judgeHistory(this.#report, this.#store, undefined, { run: undefined, steps: [] }, { run, steps: [] });
    }
    if (created.length > 0) this.deliveries.created(ingest, created);
    result.then(
      (answer) => {
        if (answer.outcome !== 'duplicate') return;
        const own = answer.record.key === ingest.records[0]?.key;
        const sameBody = answer.record.requestHash === ingest.records[0]?.requestHash;
        if (!own) this.situations.meet('a second delivery of a burst starts nothing');
        else this.situations.meet(sameBody ? 'a delivery comes again' : 'a delivery comes again with another body');
      },
      () => {},
    );
    return result;
  }

  sealing(key: string, document: Buffer): void {
    const [, tenant = '', runId = '', file] = key.split('/');
    const run = this.#store.inside.run(tenant, runId);
    if (!run || !TERMINAL.has(run.status)) this.#report('evidence is never sealed early', `${runId}, ${run?.status}`);
    if (file !== 'bundle.json') return;
    const { head, commits } = JSON.parse(document.toString());
    if (head.hash !== run?.headHash || commits.length !== run?.seq) this.#report('evidence is complete', runId);
  }

  sent(request: OutsideRequest): void {
    this.effects.sent(request);
  }

  askedToWait(request: OutsideRequest, untilMs: number): void {
    this.effects.askedToWait(request, untilMs);
  }

  landed(request: OutsideRequest): void {
    this.effects.landed(request);
  }

  /** Whatever an invocation did not wait for would go on in a sandbox that thaws minutes later (faults.md 24). */
  answered(by: Invocation): void {
    if (by.underWay > 0) this.#report('an invocation waits for all it has begun', `${by.id}: ${by.underWay} calls`);
  }

  complained(by: Invocation, message: string, error: unknown): void {
    if (error !== undefined && !isExpected(error)) this.threw(by, `${message}: ${String(error)}`);
  }

  /** An invocation failed: fine if we made it fail, a bug if it did so by itself. */
  failed(by: Invocation, error: unknown, ...codes: string[]): void {
    if (isExpected(error)) return;
    if (error instanceof CountersignError && codes.includes(error.code)) return;
    this.threw(by, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  threw(by: Invocation, what: string): void {
    this.#report('nothing fails but by the faults we make', `${by.id}: ${what}`);
  }
}

function isExpected(error: unknown): boolean {
  return (
    error instanceof InjectedFault || (error instanceof Error && error.cause !== undefined && isExpected(error.cause))
  );
}
