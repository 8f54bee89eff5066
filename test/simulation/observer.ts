import type { Decided, Deciding } from '../../lambdas/approval/decide.ts';
import { OutcomeUnknown, TargetRefused } from '../../lambdas/connectors/target-errors.ts';
import { Problem } from '../../lambdas/entry/http.ts';
import type { Clock } from '../../lambdas/entry/ports.ts';
import { bundlesIn, isBundleObject } from '../../lambdas/evidence/bundle/bundle-object.ts';
import { type Approval, isOpen } from '../../lambdas/run/approval.ts';
import type { RunChange } from '../../lambdas/run/commit.ts';
import { CountersignError, type ErrorCode } from '../../lambdas/run/errors.ts';
import type { StartedRun } from '../../lambdas/run/idempotency.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { CommitResult, Ingest, IngestResult } from '../../lambdas/run/run-store.ts';
import type { TenantSettings } from '../../lambdas/run/settings/caps.ts';
import { endsRun } from '../../lambdas/run/statuses/ended-run.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import type { FakeTask } from '../fakes/targets/fake-a2a.ts';
import { SituationDetector } from './detect-situations.ts';
import { isDigester, isNotifier } from './environment/functions.ts';
import type { Invocation } from './environment/invocation.ts';
import { SESSION_SECRET } from './environment/ports.ts';
import type { SimulatedPolicy } from './environment/simulated-policy.ts';
import type { TargetRequest } from './environment/simulated-targets.ts';
import { InjectedFault } from './faults.ts';
import { AgentInvariants } from './invariants/agents.ts';
import { ApprovalInvariants } from './invariants/approvals.ts';
import { BulkJobInvariants } from './invariants/bulk-jobs.ts';
import { CardInvariants } from './invariants/cards.ts';
import { CommandSessionInvariants } from './invariants/command-sessions.ts';
import { DeliveryInvariants } from './invariants/deliveries.ts';
import { DigestInvariants } from './invariants/digests.ts';
import { GovernedWriteInvariants } from './invariants/governed-writes.ts';
import { KillSwitchInvariants } from './invariants/kill-switch.ts';
import { TERMINAL } from './invariants/lifecycle-table.ts';
import { NoticeInvariants } from './invariants/notices.ts';
import { RepeatedRunInvariants } from './invariants/repeated-runs.ts';
import type { Report } from './invariants/report.ts';
import { RollbackInvariants } from './invariants/rollback.ts';
import { checkHistory, checkSuccess, snapshot } from './invariants/run-history.ts';
import { ScheduleInvariants } from './invariants/schedules.ts';
import { isAboutSession, SessionInvariants } from './invariants/sessions.ts';
import { SlotInvariants } from './invariants/slots.ts';
import { TargetRequestInvariants } from './invariants/target-requests.ts';
import { Situations } from './situations.ts';

/** The sealer checks the rules of docs/evidence-format.md on each bundle, with the code of the verifier. */
export const RULES_FOLLOWED = 'evidence shows that the rules were followed';

/** Receives everything that happens in a simulation at the moment it takes effect, and checks the invariants. */
export class Observer {
  readonly situations = new Situations();
  readonly effects: TargetRequestInvariants;
  readonly deliveries: DeliveryInvariants;
  readonly schedules: ScheduleInvariants;
  readonly approvals: ApprovalInvariants;
  readonly repeats: RepeatedRunInvariants;
  readonly cards: CardInvariants;
  readonly digests: DigestInvariants;
  readonly notices: NoticeInvariants;
  readonly bulk: BulkJobInvariants;
  readonly agents: AgentInvariants;
  readonly killSwitch: KillSwitchInvariants;
  readonly sessions: SessionInvariants;
  readonly commandSessions: CommandSessionInvariants;
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #slots: SlotInvariants;
  readonly #workflow: (run: Run) => Workflow | undefined;
  readonly #governed: GovernedWriteInvariants;
  readonly #rollback: RollbackInvariants;
  readonly #situationDetector: SituationDetector;
  readonly #onChange: (run: Run) => void;
  readonly #onSession: (tenant: string, task: FakeTask) => void;
  readonly #onApprovalRequested: (approval: Approval) => void;

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: {
      settings: (tenant: string) => TenantSettings;
      workflow: (run: Run) => Workflow | undefined;
      clocksAreClose: boolean;
      /** No operator asks for an immediate retry. */
      noCommands: boolean;
      time: Clock;
      skewMs: number;
      isOutdated: (run: Run) => boolean;
      policy: SimulatedPolicy;
      onChange: (run: Run) => void;
      onSession: (tenant: string, task: FakeTask) => void;
      /** An approval was requested, or its write was edited. */
      onApprovalRequested: (approval: Approval) => void;
    },
  ) {
    this.#report = report;
    this.#store = store;
    this.#workflow = known.workflow;
    this.#onChange = known.onChange;
    this.#onApprovalRequested = known.onApprovalRequested;
    this.#onSession = known.onSession;
    this.#situationDetector = new SituationDetector(this.situations, known.isOutdated);
    this.killSwitch = new KillSwitchInvariants(report, { ...known, situations: this.situations });
    this.effects = new TargetRequestInvariants(report, store, {
      ...known,
      killSwitch: this.killSwitch,
      approval: (id) => this.approvals.now(id),
    });
    this.deliveries = new DeliveryInvariants(report, store);
    this.schedules = new ScheduleInvariants(report, store);
    this.repeats = new RepeatedRunInvariants(report, store);
    this.bulk = new BulkJobInvariants(report, this.situations);
    this.approvals = new ApprovalInvariants(report, () => known.time.now());
    const { situations } = this;
    this.cards = new CardInvariants(report, store, {
      ...known,
      situations,
      approval: (id) => this.approvals.now(id),
      approvals: () => this.approvals.all(),
      nowMs: () => known.time.now(),
    });
    this.digests = new DigestInvariants(report, { ...known, situations, approval: (id) => this.approvals.now(id) });
    this.notices = new NoticeInvariants(report, store, { ...known, situations });
    const onStarted = (key: string) => this.effects.commandStarted(key);
    this.agents = new AgentInvariants(report, store, { ...known, situations, onStarted });
    this.sessions = new SessionInvariants(report, store, {
      ...known,
      situations,
      onStarted: (tenant, key) => this.effects.sessionStarted(tenant, key),
      onGone: (tenant, key) => this.effects.sessionGone(tenant, key),
    });
    this.commandSessions = new CommandSessionInvariants(report, store, {
      ...known,
      situations,
      secret: SESSION_SECRET,
      onStarted: (tenant, key) => this.effects.sessionStarted(tenant, key),
    });
    this.#governed = new GovernedWriteInvariants(report, known.policy, this.approvals);
    this.#rollback = new RollbackInvariants(report, store);
    this.#slots = new SlotInvariants(report, store, known.settings, known.workflow);
  }

  committing(by: Invocation, change: RunChange, commit: () => Promise<CommitResult>): Promise<CommitResult> {
    const { tenant, runId } = change.run;
    const before = snapshot(this.#store, tenant, runId);
    const result = commit();
    const after = snapshot(this.#store, tenant, runId);
    const workflow = before.run && this.#workflow(before.run);
    checkHistory(this.#report, this.#store, workflow, before, after);
    result.then(
      ({ outcome }) => this.#situationDetector.committing(by, change, outcome, after.run === before.run),
      () => {},
    );
    if (!after.run || after.run === before.run) return result;
    this.#checkCreated(change);
    this.effects.changed(by);
    this.killSwitch.committed(by, change, before);
    checkSuccess(this.#report, workflow, after);
    this.#slots.committed(before.run, after.run);
    this.commandSessions.committed(change, before);
    for (const { receipt } of change.receipts) this.effects.committed(receipt);
    this.approvals.expectedMakers.committed(runId, change.commit);
    for (const { approval } of change.approvals)
      this.approvals.committed(after.run, after.steps, change.commit, approval);
    this.#governed.committed(change);
    this.#rollback.committed(before, after, change.commit);
    this.repeats.committed(change);
    this.bulk.committed(change);
    this.notices.committed(change);
    this.agents.committed(change, before, after.run);
    this.sessions.committed(change, before, after.run);
    const hasSeal = () =>
      [...this.#store.inside.outbox()].some((entry) => entry.kind !== 'store_output' && entry.runId === runId);
    const isEnded = TERMINAL.has(after.run.status);
    if (isEnded && endsRun(change.commit) && !('sealDueAt' in after.run)) {
      this.#report('an ended run is due until it is sealed', `${runId}, ended by ${by.id}`);
    }
    if (isEnded && !endsRun(change.commit) && !hasSeal()) {
      this.#report('a commit after the end has an outbox entry for its evidence', `${runId}, by ${by.id}`);
    }
    if (change.commit.events.some(({ type }) => type === 'run.resolved')) {
      this.situations.record('an ended run is resolved');
      this.effects.resolved(change.receipts.map(({ receipt }) => receipt));
    }
    this.#situationDetector.committed(change, before, after.run);
    this.#onChange(after.run);
    for (const { approval, expectedRevision } of change.approvals) {
      const edited = change.commit.events.some(({ type }) => type === 'approval.edited');
      if (expectedRevision === 'new' || edited) this.#onApprovalRequested(approval);
    }
    return result;
  }

  /** The run that rolls back the run of this commit, or an action of its session. */
  #checkCreated({ run, creates }: RunChange): void {
    if (!creates) return;
    const { tenant, runId } = creates.run;
    const created = snapshot(this.#store, tenant, runId);
    checkHistory(this.#report, this.#store, undefined, { run: undefined, steps: [] }, created);
    this.approvals.expectedMakers.committed(runId, creates.commit);
    if (creates.run.request?.action) return;
    const others = [...this.#store.inside.runs()].filter(({ rollbackOf }) => rollbackOf?.runId === run.runId);
    const isLinked = this.#store.inside.run(tenant, run.runId)?.rolledBackBy === runId;
    if (others.length !== 1 || !isLinked || !TERMINAL.has(run.status)) {
      this.#report('an ended run is rolled back at most once', `${run.runId} by ${others.map((each) => each.runId)}`);
    }
    this.situations.record('an ended run is rolled back');
  }

  async ingesting(ingest: Ingest, write: () => Promise<IngestResult>): Promise<IngestResult> {
    const known = new Set([...this.#store.inside.runs()].map(({ tenant, runId }) => `${tenant} ${runId}`));
    const result = write();
    const created = [...this.#store.inside.runs()].filter(({ tenant, runId }) => !known.has(`${tenant} ${runId}`));
    for (const run of created) {
      checkHistory(this.#report, this.#store, undefined, { run: undefined, steps: [] }, { run, steps: [] });
    }
    const delivered = created.filter(({ request }) => !request || request.slot !== undefined);
    if (delivered.length > 0) this.deliveries.created(ingest, delivered);
    this.repeats.created(created);
    this.bulk.created(created);
    this.notices.created(created);
    this.schedules.created(created);
    result.then(
      (ingested) => {
        if (ingested.outcome !== 'duplicate') return;
        const { key, requestHash, hook } = ingested.record;
        const own = key === ingest.records[0]?.key;
        const sameBody = requestHash === ingest.records[0]?.requestHash;
        if (key.startsWith('api:') || key.startsWith('plan:')) return;
        if (key.startsWith('slack:')) return this.situations.record('a message in Slack starts no second run');
        if (key.startsWith('scheduler:')) return this.situations.record('a slot of a schedule is fired again');
        if (key.startsWith('github:body:')) this.situations.record('a signed body is repeated under another id');
        else if (!own) this.situations.record('an event is repeated under another id');
        else if (!sameBody && hook !== ingest.records[0]?.hook)
          this.situations.record('an event is repeated through another hook');
        else this.situations.record(sameBody ? 'a delivery is repeated' : 'a delivery is repeated with another body');
      },
      () => {},
    );
    return result;
  }

  sealing(key: string, document: Buffer): void {
    const [, tenant = '', addendumOf = ''] = key.split('/');
    if (isBundleObject(key)) for (const bundle of bundlesIn(document)) this.#sealingBundle(tenant, bundle.document);
    else this.#assertEnded(tenant, addendumOf);
  }

  #assertEnded(tenant: string, runId: string): void {
    const run = this.#store.inside.run(tenant, runId);
    if (!run || !TERMINAL.has(run.status)) this.#report('evidence is never sealed early', `${runId}, ${run?.status}`);
  }

  #sealingBundle(tenant: string, document: Buffer): void {
    const { run, head, commits } = JSON.parse(document.toString());
    const { runId } = run;
    this.#assertEnded(tenant, runId);
    const last = this.#store.inside.commit(tenant, runId, head.count);
    const ends = last?.events.some((event) => event.type === 'run.status_changed' && TERMINAL.has(event.to));
    if (head.hash !== last?.hash || commits.length !== head.count || !ends) this.#report('evidence is complete', runId);
  }

  sent(request: TargetRequest): void {
    if (isAboutSession(request)) this.sessions.sent(request);
    else if (isDigester(request.by)) this.digests.sent(request);
    else if (isNotifier(request.by)) this.notices.sent(request);
    else {
      this.effects.sent(request);
      this.#rollback.sent(request);
      this.repeats.sent(request);
    }
  }

  retryAfter(request: TargetRequest, untilMs: number): void {
    const { by } = request;
    if (!isDigester(by) && !isNotifier(by) && !isAboutSession(request)) this.effects.retryAfter(request, untilMs);
  }

  handled(request: TargetRequest, fields: Record<string, string> | undefined): void {
    if (isAboutSession(request)) return;
    if (isDigester(request.by)) this.digests.handled(request);
    else if (isNotifier(request.by)) this.notices.handled(request);
    else {
      this.effects.handled(request);
      this.#rollback.handled(request, fields);
      this.repeats.handled(request, fields);
    }
  }

  sessionStarted(request: TargetRequest, task: FakeTask): void {
    this.sessions.started(request, task);
    this.#onSession(request.by.tenant, task);
  }

  changedWithoutCommit(before: Approval, changes: Partial<Approval>): void {
    this.approvals.changedWithoutCommit(before, changes);
  }

  /** A task token may be used twice, or too late, but only with the stored decision. */
  taskTokenUsed({ approvalId, status }: Pick<Approval, 'approvalId' | 'status'>, executionWaited: boolean): void {
    const decided = this.approvals.now(approvalId)?.status;
    if (decided !== status || isOpen({ status })) {
      this.#report(
        'a task token returns the stored decision',
        `${approvalId} is ${decided}, the token returns ${status}`,
      );
    }
    this.situations.record(
      executionWaited ? 'a decision ends its Step Functions wait' : 'a task token is used that no execution waits for',
    );
  }

  /** A request for a run got its response. */
  started(tenant: string, { runId, request }: StartedRun, isNew: boolean): void {
    this.repeats.responded(tenant, request, runId);
    if (!isNew) this.situations.record('a request for a run is repeated');
    else if (request?.rerunOf !== undefined) this.situations.record('an ended run is rerun');
    else this.situations.record(request?.replay ? 'an ended run is replayed' : 'a plan is applied');
  }

  decided({ approvalId }: Deciding, decided: Decided): void {
    this.approvals.decided(approvalId, decided);
    if (decided.outcome === 'already') this.situations.record('a person repeats a decision');
  }

  refused({ approvalId, person }: Deciding, code: ErrorCode): void {
    this.#situationDetector.refused(code);
    const approval = this.approvals.now(approvalId);
    if (code === 'APPROVAL_SELF' && !approval?.makers.includes(person)) {
      this.#report('responses show the stored decision', `${person} is no maker of ${approvalId}`);
    }
  }

  /** Work that an invocation did not await would continue in a sandbox that is reused minutes later (fault 24). */
  returned(by: Invocation): void {
    if (by.openCalls > 0)
      this.#report('an invocation awaits all calls that it started', `${by.id}: ${by.openCalls} calls`);
  }

  logged(by: Invocation, message: string, error: unknown): void {
    if (error !== undefined && !isExpected(error)) this.threw(by, `${message}: ${String(error)}`);
  }

  /** An invocation failed: expected after an injected fault or with one of these codes, otherwise a bug. */
  failed(by: Invocation, error: unknown, ...codes: string[]): void {
    if (isExpected(error)) return;
    if (error instanceof CountersignError && error.code === 'RULES_BROKEN') {
      this.#report(RULES_FOLLOWED, error.message);
      return;
    }
    const hasCode = error instanceof CountersignError || error instanceof Problem;
    if (hasCode && codes.includes(error.code)) return;
    this.threw(by, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  threw(by: Invocation, what: string): void {
    this.#report('only injected faults cause errors', `${by.id}: ${what}`);
  }
}

/** Injected faults, and the errors that connectors throw because of them. */
function isExpected(error: unknown): boolean {
  if (error instanceof TargetRefused || error instanceof OutcomeUnknown) return true;
  // The invocation was paused for longer than its lease.
  if (error instanceof CountersignError && error.code === 'LEASE_LOST') return true;
  return (
    error instanceof InjectedFault || (error instanceof Error && error.cause !== undefined && isExpected(error.cause))
  );
}
