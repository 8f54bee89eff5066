import type { Decided, Deciding } from '../../lambdas/approval/decide.ts';
import { OutcomeUnknown, TargetRefused } from '../../lambdas/connectors/target-errors.ts';
import { Problem } from '../../lambdas/entry/http.ts';
import type { Clock } from '../../lambdas/entry/ports.ts';
import { type Approval, isOpen } from '../../lambdas/run/approval.ts';
import type { TenantSettings } from '../../lambdas/run/caps.ts';
import type { RunChange } from '../../lambdas/run/commit.ts';
import { CountersignError, type ErrorCode } from '../../lambdas/run/errors.ts';
import type { StartedRun } from '../../lambdas/run/idempotency.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { CommitResult, Ingest, IngestResult } from '../../lambdas/run/run-store.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { MemoryRunStore } from '../fakes/memory-run-store.ts';
import { InjectedFault } from './faults.ts';
import { ApprovalsJudge } from './invariants/approvals.ts';
import { DeliveriesJudge } from './invariants/deliveries.ts';
import { EffectsJudge } from './invariants/effects.ts';
import { GovernedWritesJudge } from './invariants/governed-writes.ts';
import { TERMINAL } from './invariants/lifecycle-table.ts';
import { RepeatsJudge } from './invariants/repeats.ts';
import type { Report } from './invariants/report.ts';
import { RollbackJudge } from './invariants/rollback.ts';
import { judgeHistory, judgeSuccess, snapshot } from './invariants/run-history.ts';
import { SchedulesJudge } from './invariants/schedules.ts';
import { SlotsJudge } from './invariants/slots.ts';
import type { Invocation } from './invocation.ts';
import { Noticing } from './noticing.ts';
import type { SimulatedPolicy } from './simulated-policy.ts';
import type { OutsideRequest } from './simulated-targets.ts';
import { Situations } from './situations.ts';

/** Sees everything that happens in a world, at the moment it takes effect, and reports what must never be. */
export class Witness {
  readonly situations = new Situations();
  readonly effects: EffectsJudge;
  readonly deliveries: DeliveriesJudge;
  readonly schedules: SchedulesJudge;
  readonly approvals: ApprovalsJudge;
  readonly repeats: RepeatsJudge;
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #places: SlotsJudge;
  readonly #workflow: (run: Run) => Workflow | undefined;
  readonly #governed: GovernedWritesJudge;
  readonly #rollback: RollbackJudge;
  readonly #noticing: Noticing;
  readonly #onChange: (run: Run) => void;
  readonly #onAsked: (approval: Approval) => void;

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: {
      settings: (tenant: string) => TenantSettings;
      workflow: (run: Run) => Workflow | undefined;
      clocksAreSane: boolean;
      /** No operator asks for an immediate retry. */
      nobodyHurries: boolean;
      time: Clock;
      skewMs: number;
      isOutdated: (run: Run) => boolean;
      policy: SimulatedPolicy;
      onChange: (run: Run) => void;
      /** People are asked, for the first time or because it was edited. */
      onAsked: (approval: Approval) => void;
    },
  ) {
    this.#report = report;
    this.#store = store;
    this.#workflow = known.workflow;
    this.#onChange = known.onChange;
    this.#onAsked = known.onAsked;
    this.#noticing = new Noticing(this.situations, known.isOutdated);
    this.effects = new EffectsJudge(report, store, { ...known, approval: (id) => this.approvals.now(id) });
    this.deliveries = new DeliveriesJudge(report, store);
    this.schedules = new SchedulesJudge(report, store);
    this.repeats = new RepeatsJudge(report, store);
    this.approvals = new ApprovalsJudge(report);
    this.#governed = new GovernedWritesJudge(report, known.policy, this.approvals);
    this.#rollback = new RollbackJudge(report, store);
    this.#places = new SlotsJudge(report, store, known.settings, known.workflow);
  }

  committing(by: Invocation, change: RunChange, commit: () => Promise<CommitResult>): Promise<CommitResult> {
    const { tenant, runId } = change.run;
    const before = snapshot(this.#store, tenant, runId);
    const result = commit();
    const after = snapshot(this.#store, tenant, runId);
    const workflow = before.run && this.#workflow(before.run);
    judgeHistory(this.#report, this.#store, workflow, before, after);
    result.then(
      ({ outcome }) => this.#noticing.result(by, change, outcome, after.run === before.run),
      () => {},
    );
    if (!after.run || after.run === before.run) return result;
    this.#judgeCreated(change);
    this.effects.changed(by);
    judgeSuccess(this.#report, workflow, after);
    this.#places.committed(before.run, after.run);
    for (const { receipt } of change.receipts) this.effects.committed(receipt);
    this.approvals.contributions.committed(runId, change.commit);
    for (const { approval } of change.approvals)
      this.approvals.committed(after.run, after.steps, change.commit, approval);
    this.#governed.committed(change);
    this.#rollback.committed(before, after, change.commit);
    this.repeats.committed(change);
    if (TERMINAL.has(after.run.status) && ![...this.#store.inside.outbox()].some((entry) => entry.runId === runId)) {
      this.#report('an ended run has an outbox entry for its evidence', `${runId}, ended by ${by.id}`);
    }
    if (change.commit.events.some(({ type }) => type === 'run.resolved')) {
      this.situations.meet('an ended run is resolved');
      this.effects.resolved(change.receipts.map(({ receipt }) => receipt));
    }
    this.#noticing.change(change, before, after.run);
    this.#onChange(after.run);
    for (const { approval, expectedRevision } of change.approvals) {
      const edited = change.commit.events.some(({ type }) => type === 'approval.edited');
      if (expectedRevision === 'new' || edited) this.#onAsked(approval);
    }
    return result;
  }

  /** The run that rolls back the run of this commit. */
  #judgeCreated({ run, creates }: RunChange): void {
    if (!creates) return;
    const { tenant, runId } = creates.run;
    const created = snapshot(this.#store, tenant, runId);
    judgeHistory(this.#report, this.#store, undefined, { run: undefined, steps: [] }, created);
    this.approvals.contributions.committed(runId, creates.commit);
    const others = [...this.#store.inside.runs()].filter(({ rollbackOf }) => rollbackOf?.runId === run.runId);
    const isLinked = this.#store.inside.run(tenant, run.runId)?.rolledBackBy === runId;
    if (others.length !== 1 || !isLinked || !TERMINAL.has(run.status)) {
      this.#report('an ended run is rolled back at most once', `${run.runId} by ${others.map((each) => each.runId)}`);
    }
    this.situations.meet('an ended run is rolled back');
  }

  async ingesting(ingest: Ingest, write: () => Promise<IngestResult>): Promise<IngestResult> {
    const known = new Set([...this.#store.inside.runs()].map(({ tenant, runId }) => `${tenant} ${runId}`));
    const result = write();
    const created = [...this.#store.inside.runs()].filter(({ tenant, runId }) => !known.has(`${tenant} ${runId}`));
    for (const run of created) {
      judgeHistory(this.#report, this.#store, undefined, { run: undefined, steps: [] }, { run, steps: [] });
    }
    const delivered = created.filter(({ request }) => !request || request.slot !== undefined);
    if (delivered.length > 0) this.deliveries.created(ingest, delivered);
    this.repeats.created(created);
    this.schedules.created(created);
    result.then(
      (answer) => {
        if (answer.outcome !== 'duplicate') return;
        const own = answer.record.key === ingest.records[0]?.key;
        const sameBody = answer.record.requestHash === ingest.records[0]?.requestHash;
        const { key } = answer.record;
        if (key.startsWith('api:') || key.startsWith('plan:')) return;
        if (key.startsWith('scheduler:')) return this.situations.meet('a slot of a schedule is fired again');
        if (key.startsWith('github:body:')) this.situations.meet('a signed body comes again under another id');
        else if (!own) this.situations.meet('the same event comes under another id');
        else if (!sameBody && answer.record.hook !== ingest.records[0]?.hook)
          this.situations.meet('an event comes through another hook');
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
    const last = this.#store.inside.commit(tenant, runId, head.count);
    const ends = last?.events.some((event) => event.type === 'run.status_changed' && TERMINAL.has(event.to));
    if (head.hash !== last?.hash || commits.length !== head.count || !ends) this.#report('evidence is complete', runId);
  }

  sent(request: OutsideRequest): void {
    this.effects.sent(request);
    this.#rollback.sent(request);
    this.repeats.sent(request);
  }

  askedToWait(request: OutsideRequest, untilMs: number): void {
    this.effects.askedToWait(request, untilMs);
  }

  landed(request: OutsideRequest, fields: Record<string, string> | undefined): void {
    this.effects.landed(request);
    this.#rollback.landed(request, fields);
    this.repeats.landed(request, fields);
  }

  held(before: Approval, changes: Partial<Approval>): void {
    this.approvals.held(before, changes);
  }

  /** A token may be answered twice, or after its time; but never with anything else than what was decided. */
  tokenAnswered({ approvalId, status }: Pick<Approval, 'approvalId' | 'status'>, somebodyWaited: boolean): void {
    const decided = this.approvals.now(approvalId)?.status;
    if (decided !== status || isOpen({ status })) {
      this.#report(
        'a token is answered with what was decided',
        `${approvalId} is ${decided}, the answer says ${status}`,
      );
    }
    this.situations.meet(
      somebodyWaited ? 'a decision wakes its execution' : 'a token is answered that nobody waits with',
    );
  }

  /** A request for a run was answered. */
  started(tenant: string, { runId, request }: StartedRun, isNew: boolean): void {
    this.repeats.answered(tenant, request, runId);
    if (!isNew) this.situations.meet('a request for a run comes again');
    else if (request?.rerunOf !== undefined) this.situations.meet('an ended run is rerun');
    else this.situations.meet(request?.replay ? 'an ended run is replayed' : 'a plan is applied');
  }

  decided({ approvalId }: Deciding, decided: Decided): void {
    this.approvals.decided(approvalId, decided);
    if (decided.outcome === 'already') this.situations.meet('a person says the same again');
  }

  refused({ approvalId, person }: Deciding, code: ErrorCode): void {
    this.#noticing.refusal(code);
    const approval = this.approvals.now(approvalId);
    if (code === 'APPROVAL_SELF' && !approval?.makers.includes(person)) {
      this.#report('people see what was decided', `${person} is no maker of ${approvalId}`);
    }
  }

  /** Work that an invocation did not await would continue in a sandbox that is reused minutes later (fault 24). */
  answered(by: Invocation): void {
    if (by.underWay > 0) this.#report('an invocation waits for all it has begun', `${by.id}: ${by.underWay} calls`);
  }

  complained(by: Invocation, message: string, error: unknown): void {
    if (error !== undefined && !isExpected(error)) this.threw(by, `${message}: ${String(error)}`);
  }

  /** An invocation failed: fine if we made it fail, a bug if it did so by itself. */
  failed(by: Invocation, error: unknown, ...codes: string[]): void {
    if (isExpected(error)) return;
    const hasCode = error instanceof CountersignError || error instanceof Problem;
    if (hasCode && codes.includes(error.code)) return;
    this.threw(by, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  threw(by: Invocation, what: string): void {
    this.#report('nothing fails but by the faults we make', `${by.id}: ${what}`);
  }
}

/** Our own faults, and what connectors make of them. */
function isExpected(error: unknown): boolean {
  if (error instanceof TargetRefused || error instanceof OutcomeUnknown) return true;
  return (
    error instanceof InjectedFault || (error instanceof Error && error.cause !== undefined && isExpected(error.cause))
  );
}
