import type { DigestRequest } from '../../lambdas/approval/digest/post-digest.ts';
import { isAnnouncement, type StartApproval } from '../../lambdas/outbox/outbox.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { FlagName, FlagValues } from '../../lambdas/run/settings/flags.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryBulkJobs } from '../fakes/memory/memory-bulk-jobs.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import type { ApprovalFollow } from '../fakes/memory/memory-outbox.ts';
import { MemoryPlanStore } from '../fakes/memory/memory-plan-store.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { sendHttpThroughFetch } from '../fakes/targets/http-through-fetch.ts';
import { Approvers } from './actors/approvers.ts';
import { BulkOperators } from './actors/bulk-operators.ts';
import { EndedRunOperators } from './actors/ended-run-operators.ts';
import { IncidentEditors, NEW_INCIDENT } from './actors/incident-editors.ts';
import { Operators } from './actors/operators.ts';
import { PLANNED_INCIDENT, RunRequesters } from './actors/run-requesters.ts';
import { Senders } from './actors/senders.ts';
import { type AgentBehavior, SimulatedAgents } from './actors/simulated-agents.ts';
import { SimulatedSessions } from './actors/simulated-sessions.ts';
import { THREAD_CHANNEL, type ThreadBehavior, ThreadWriters } from './actors/thread-writers.ts';
import { ApprovalMachine } from './environment/approval-machine.ts';
import { FaultyCalls } from './environment/faulty-calls.ts';
import { Functions, type NoticeRequest, type SealMessage } from './environment/functions.ts';
import type { SharedServices } from './environment/ports.ts';
import { SealBatches } from './environment/seal-batches.ts';
import { SeededRandom } from './environment/seeded-random.ts';
import { SimulatedPolicy } from './environment/simulated-policy.ts';
import { SimulatedQueue } from './environment/simulated-queue.ts';
import { SimulatedTargets } from './environment/simulated-targets.ts';
import { StaleIndexReads } from './environment/stale-index-reads.ts';
import { VirtualTime } from './environment/virtual-time.ts';
import { EventLog } from './event-log.ts';
import type { Fault } from './faults.ts';
import { checkAcceptedRuns } from './invariants/accepted-runs.ts';
import { checkFinalState } from './invariants/final-state.ts';
import { Observer } from './observer.ts';
import { NOTICES_CHANNEL, type Published, publishDefinitions } from './publish-definitions.ts';
import type { Scenario } from './scenario.ts';
import type { Situation } from './situations.ts';

const SWEEPS_EVERY_MS = 60_000;
/** Far more than any simulation needs: one that has more events never ends. */
const EVENTS_MAX = 25_000;
/** Paused runs are resumed or canceled this often before all are canceled. */
const FINAL_ROUNDS = 3;
/** A second announcement comes after the first one, or while it posts. */
const ANNOUNCED_TWICE_WITHIN_MS = 2_000;
const SIGNER = new SeededSigner();

/** As many messages as the sealing function gets at once. */
const SEAL_BATCH = 10;

export interface Violation {
  invariant: string;
  what: string;
}

export interface Outcome {
  violation?: Violation;
  eventLog: EventLog;
  events: number;
  calls: number;
  injected: ReadonlyMap<Fault, number>;
  situations: ReadonlyMap<Situation, number>;
  /** Status of every run in the order of the ids, without runs of schedules: their number depends on time. */
  statuses: string[];
}

/** One simulated system, from its first webhook until no work is left. */
export class Simulation {
  readonly time = new VirtualTime(STORY_BEGINS_AT);
  readonly eventLog: EventLog;
  /** Pages of one entry: a reader that ignores the cursor misses the second. */
  readonly store = new MemoryRunStore(undefined, { duePageMax: 1 });
  readonly evidence = new MemoryEvidenceStore();
  readonly targets: SimulatedTargets;
  readonly senders: Senders;
  readonly published: Published;
  readonly observer: Observer;
  readonly machine: ApprovalMachine;
  readonly incidentEditors: IncidentEditors;
  readonly #scenario: Scenario;
  readonly #watched: string | undefined;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #operators: Operators;
  readonly #approvers: Approvers;
  readonly #endedRunOperators: EndedRunOperators;
  readonly #runRequesters: RunRequesters;
  readonly #bulkOperators: BulkOperators;
  readonly #policy: SimulatedPolicy;
  readonly #agents: SimulatedAgents | undefined;
  readonly #sessions: SimulatedSessions | undefined;
  readonly #threadWriters: ThreadWriters | undefined;
  readonly #definitions: MemoryDefinitions;
  #violation: Violation | undefined;
  #events = 0;
  #lastSweepMs = 0;
  #sweeping = false;

  /** `watched`: only this invariant is checked, to see what it finds without the others. */
  constructor(scenario: Scenario, print?: (line: string) => void, watched?: string) {
    this.#scenario = scenario;
    this.#watched = watched;
    const { seed, settings, plan, workers } = scenario;
    this.#random = new SeededRandom(seed * 7 + 3);
    this.eventLog = new EventLog(this.time, print);
    const definitions = new MemoryDefinitions();
    this.#definitions = definitions;
    this.published = publishDefinitions(definitions, scenario);
    this.#policy = new SimulatedPolicy(this.time, definitions);
    this.observer = new Observer((invariant, what) => this.violate(invariant, what), this.store, {
      settings: () => settings,
      workflow: (run) => this.#workflowOf(run),
      clocksAreClose: scenario.clocksAreClose,
      noCommands:
        scenario.commands === 0 &&
        scenario.commandChance === 0 &&
        scenario.scripted.length === 0 &&
        scenario.bulk.length === 0,
      time: this.time,
      skewMs: scenario.skewMs,
      isOutdated: (run) => this.published.isOutdated(run),
      policy: this.#policy,
      onApprovalRequested: (approval) => this.#approvers.requested(approval),
      onSession: (tenant, task) => this.#sessions?.start(tenant, task),
      onChange: (run) => {
        if (scenario.changesEndedRuns) this.#endedRunOperators.ended(run);
        if (scenario.repeats) this.#runRequesters.ended(run);
        this.#threadWriters?.changed(run);
        if (plan.over) return;
        const { tenant, runId, status } = run;
        // People send commands most often after a step has failed.
        const chance = status === 'failed_retryable' ? 2 * scenario.commandChance : scenario.commandChance;
        if (this.#random.chance(chance)) this.#operators.reactTo(run);
        if (this.#random.chance(scenario.extraMessageChance)) {
          steps.send({ tenant, runId }, this.#random.between(0, 8_000), undefined);
        }
      },
    });
    const faultyCalls = new FaultyCalls(this.time, this.#random, scenario, (line) => this.eventLog.add(line));
    const agents = scenario.agents && this.#agentsFor(scenario.agents, faultyCalls);
    this.#agents = agents;
    this.#sessions =
      scenario.sessions &&
      new SimulatedSessions(
        {
          ...{ time: this.time, faultyCalls, invariants: this.observer.sessions },
          random: new SeededRandom(seed * 41 + 19),
          functions: () => this.#functions,
        },
        scenario.sessions,
      );
    this.targets = new SimulatedTargets(this.time, faultyCalls, this.observer, scenario.targetDelayMs);
    const steps = new SimulatedQueue<StepMessage>(this.time, this.#random, workers, (message, ended) => {
      if (this.#outageEndsMs() === 0) this.#functions.processRun(message, ended);
      else this.time.after(1, () => ended('killed'));
    });
    const sealBatches = new SealBatches(this.time, (batch) => this.#functions.seal(batch));
    const seals = new SimulatedQueue<SealMessage>(this.time, this.#random, SEAL_BATCH, (message, ended) =>
      sealBatches.receive({ message, ended }),
    );
    // Lambda invokes a function for an event as for a message, and as late, twice or never.
    const announcements = new SimulatedQueue<StartApproval>(
      this.time,
      this.#random,
      workers,
      (entry, ended) => this.#functions.announceApproval(entry, ended),
      ANNOUNCED_TWICE_WITHIN_MS,
    );
    const decisions = new SimulatedQueue<ApprovalFollow>(this.time, this.#random, 2, (message, ended) =>
      this.#functions.publishDecision(message, ended),
    );
    const digestRequests = new SimulatedQueue<DigestRequest>(this.time, this.#random, 2, (request, ended) =>
      this.#functions.postDigest(request, ended),
    );
    const notices = new SimulatedQueue<NoticeRequest>(this.time, this.#random, 2, (request, ended) =>
      this.#functions.notify(request, ended),
    );
    this.machine = new ApprovalMachine(
      this.time,
      () => this.#functions,
      ({ tenant, runId, approvalId }, ended) => {
        this.observer.approvals.endedWithoutToken(approvalId, plan.injected.size > 0);
        if (ended === 'expired') steps.send({ tenant, runId }, 0, undefined);
      },
    );
    const bulkJobs = new MemoryBulkJobs();
    const shared: SharedServices = {
      time: this.time,
      faultyCalls,
      store: this.store,
      definitions,
      plans: new MemoryPlanStore(),
      bulkJobs,
      evidence: this.evidence,
      signer: SIGNER,
      targets: this.targets,
      policy: this.#policy,
      useTaskToken: (taskToken) => this.machine.useTaskToken(taskToken),
      ids: new CountingIds(),
      random: () => this.#random.next(),
      views: new StaleIndexReads((count) => this.#random.between(0, count)),
      renewsTimesAsOften: scenario.renewsTimesAsOften ?? 1,
      ...(agents && { agents }),
      stepQueue: steps,
      outbox: {
        dispatch: (entry, fault) => {
          const { id: entryId, tenant, runId } = entry;
          if (entry.kind === 'seal_evidence')
            seals.send({ entryId, tenant, runId, again: entry.attempts > 0 }, 0, fault);
          else if (entry.kind === 'seal_addendum') seals.send({ entryId, tenant, runId, seq: entry.seq }, 0, fault);
          else if (entry.kind === 'store_output') seals.send({ entryId, tenant, runId, isOutput: true }, 0, fault);
          else if (entry.kind === 'start_approval' && isAnnouncement(entry)) announcements.send(entry, 0, fault);
          else if (entry.kind === 'start_approval') this.machine.start(entry);
          else if (entry.kind === 'notify_run_end') notices.send({ entryId, tenant, runId }, 0, fault);
          else if (entry.kind === 'post_progress') notices.send({ entryId, tenant, runId, seq: entry.seq }, 0, fault);
          else if (entry.kind === 'follow_approval')
            decisions.send({ entryId, tenant, runId, approvalId: entry.approvalId }, 0, fault);
          else if (entry.kind === 'list_overdue' || entry.kind === 'repeat_digest') {
            const { kind, approvalId } = entry;
            digestRequests.send({ kind, entryId, tenant, runId, approvalId }, 0, fault);
          }
        },
      },
      observer: this.observer,
    };
    this.#functions = new Functions(shared, this.observer, this.#random, { ...scenario, machines: workers + 2 });
    this.#threadWriters = scenario.threads && this.#threadWritersFor(scenario.threads);
    this.senders = new Senders(this.time, this.#random, this.#functions);
    this.#operators = new Operators(this.time, this.#random, this.#functions, this.store);
    this.#endedRunOperators = new EndedRunOperators(this.time, seed, this.#functions, this.store);
    this.#runRequesters = new RunRequesters(this.time, seed, this.#functions);
    this.#bulkOperators = new BulkOperators(seed, {
      time: this.time,
      functions: this.#functions,
      observer: this.observer,
      store: this.store,
      jobs: bulkJobs,
    });
    this.incidentEditors = new IncidentEditors(this.#random, this.targets);
    this.#approvers = new Approvers(this.time, this.#random, this.#functions, {
      approverBehavior: scenario.approverBehavior,
      current: (approvalId) => this.observer.approvals.now(approvalId),
    });
  }

  get hadFaults(): boolean {
    return this.#scenario.plan.injected.size > 0 || this.#scenario.outage !== undefined;
  }

  /** A run that undoes an action has the one step of the action, too. */
  #workflowOf(run: Run): Workflow | undefined {
    const undone = this.store.inside.run(run.tenant, run.rollbackOf?.runId ?? '');
    return undone?.request?.action ? undefined : this.published.workflow(run);
  }

  #agentsFor(behavior: AgentBehavior, faultyCalls: FaultyCalls): SimulatedAgents {
    const { time, store, observer } = this;
    return new SimulatedAgents(
      {
        ...{ time, store, faultyCalls, situations: observer.situations },
        ...{ invariants: observer.agents, commandSessions: observer.commandSessions },
        random: new SeededRandom(this.#scenario.seed * 29 + 13),
        functions: () => this.#functions,
        sessions: () => this.#sessions,
        isCalm: () => this.#scenario.plan.over,
      },
      behavior,
    );
  }

  #threadWritersFor(behavior: ThreadBehavior): ThreadWriters {
    const ports = { time: this.time, functions: () => this.#functions, invariants: this.observer.notices };
    return new ThreadWriters(ports, this.#scenario.seed, behavior);
  }

  violate(invariant: string, what: string): void {
    if (this.#watched !== undefined && invariant !== this.#watched) return;
    this.eventLog.add(`VIOLATED: ${invariant}: ${what}`);
    this.#violation ??= { invariant, what };
  }

  async run(): Promise<Outcome> {
    const { fetch: realFetch } = globalThis;
    const { timeout: realTimeout } = AbortSignal;
    globalThis.fetch = this.targets.fetch;
    const sendHttpAsBefore = sendHttpThroughFetch();
    // No real timers here: the simulated targets end requests that take too long.
    const never = new AbortController().signal;
    AbortSignal.timeout = () => never;
    try {
      await this.#simulate();
    } finally {
      sendHttpAsBefore();
      globalThis.fetch = realFetch;
      AbortSignal.timeout = realTimeout;
    }
    const { plan } = this.#scenario;
    const runs = [...this.store.inside.runs()].sort((a, b) => (a.runId < b.runId ? -1 : 1));
    return {
      ...(this.#violation && { violation: this.#violation }),
      eventLog: this.eventLog,
      events: this.#events,
      calls: plan.calls,
      injected: plan.injected,
      situations: this.observer.situations.counts,
      statuses: runs.flatMap(({ status, request }) => (request?.slot === undefined ? [status] : [])),
    };
  }

  async #simulate(): Promise<void> {
    const { faultsForMs, plan } = this.#scenario;
    this.#schedule();
    this.time.after(faultsForMs, () => {
      this.eventLog.add('no more faults');
      plan.over = true;
    });
    await this.#untilIdle();
    for (let round = 1; !this.#violation && this.#operators.endPausedRuns(round > FINAL_ROUNDS); round += 1) {
      if (round > 2 * FINAL_ROUNDS) return this.violate('every run ends', 'a paused run cannot be canceled');
      await this.#untilIdle();
    }
    if (!this.#violation) checkFinalState(this);
    if (!this.#violation) await checkAcceptedRuns(this);
  }

  #schedule(): void {
    const { shapes, tenants, deliveries, bursts, commands, faultsForMs, scripted, deploys } = this.#scenario;
    const { policies, incidentEdits, repeats, bulk } = this.#scenario;
    for (const { afterMs, rules } of policies) {
      const publish = () => {
        for (const tenant of tenants) this.#policy.publish(tenant, rules);
      };
      if (afterMs === 0) publish();
      else this.time.after(afterMs, publish);
    }
    for (const { afterMs, field } of incidentEdits)
      this.time.after(afterMs, () => this.incidentEditors.editIncident(field));
    const { channels, issueLabels } = this.targets.systems;
    channels.set('C012345', []);
    channels.set('#approvals', []);
    for (const name of this.#threadWriters ? [THREAD_CHANNEL, NOTICES_CHANNEL] : []) channels.set(name, []);
    issueLabels.set('octo-org/payments#7', ['bug']);
    for (let each = 0; each < deliveries; each += 1) {
      this.time.after(each === 0 ? 0 : this.#random.between(0, faultsForMs / 2), () => {
        const { sysId } = this.senders.incident(tenants, shapes[each % shapes.length] as string);
        const fields = { ...NEW_INCIDENT, number: 'INC', sys_mod_count: '0' };
        const { incidents } = this.targets.systems;
        if (!incidents.has(sysId)) incidents.set(sysId, { fields, workNotes: [] });
      });
    }
    for (let each = 0; each < bursts; each += 1) this.senders.burst(tenants);
    for (let each = 0; each < commands; each += 1) {
      this.time.after(this.#random.between(100, faultsForMs), () => this.#operators.sendRandomCommand());
    }
    for (const { afterMs, command } of scripted)
      this.time.after(afterMs, () => this.#operators.sendUntilAccepted(command));
    for (const script of bulk) {
      for (const tenant of tenants) this.time.after(script.afterMs, () => this.#bulkOperators.preview(tenant, script));
    }
    this.#agents?.start(tenants);
    this.#threadWriters?.start(tenants);
    this.#scheduleBackout();
    this.#scheduleSchedule();
    if (repeats) this.#schedulePlan();
    if (deploys) this.time.after(this.#random.between(100, faultsForMs), () => this.published.deploy());
  }

  /** Agents or writes are switched off for a while. */
  #scheduleBackout(): void {
    const { agentsOff, writesOff = [], tenants, settings } = this.#scenario;
    const features: FlagValues = {};
    const turn = (flag: FlagName, isOn: boolean) => () => {
      features[flag] = isOn;
      this.eventLog.add(`${flag} is ${isOn ? 'on' : 'off'}`);
      for (const tenant of tenants) this.#definitions.saveSettings(tenant, { ...settings, features: { ...features } });
    };
    const switchOff = (flag: FlagName, { fromMs, toMs }: { fromMs: number; toMs: number }) => {
      this.time.after(fromMs, turn(flag, false));
      this.time.after(toMs, turn(flag, true));
    };
    if (agentsOff) switchOff('worker_orchestration.enabled', agentsOff);
    for (const off of writesOff) switchOff('writes.enabled', off);
  }

  #schedulePlan(): void {
    const [tenant = ''] = this.#scenario.tenants;
    const fields = { ...NEW_INCIDENT, number: 'INC0', sys_mod_count: '0' };
    this.targets.systems.incidents.set(PLANNED_INCIDENT, { fields, workNotes: [] });
    this.#runRequesters.plan(tenant, this.#scenario.shapes[0] as string);
  }

  /** The schedule ends some sweeps after the last fault. By then every slot must have started its run. */
  #scheduleSchedule(): void {
    const { scheduledForMs, tenants, faultsForMs, outage, skewMs } = this.#scenario;
    if (scheduledForMs === undefined) return;
    const now = () => new Date(this.time.now()).toISOString();
    this.observer.schedules.begin(tenants, now());
    const lateMs = 5 * SWEEPS_EVERY_MS;
    const endsMs = Math.max(scheduledForMs, faultsForMs, outage?.toMs ?? 0) + lateMs;
    this.time.after(endsMs, () => this.observer.schedules.end(tenants, now(), lateMs + skewMs));
  }

  /** Runs the scheduled calls in order, and sweeps when something is due, until neither is left. */
  async #untilIdle(): Promise<void> {
    while (!this.#violation) {
      const nextMs = this.time.nextAtMs() ?? Number.POSITIVE_INFINITY;
      const sweepMs = this.#sweeping ? Number.POSITIVE_INFINITY : this.#nextSweepMs();
      if (nextMs === Number.POSITIVE_INFINITY && sweepMs === Number.POSITIVE_INFINITY) return;
      if (sweepMs < nextMs) this.#sweep(sweepMs);
      else this.time.runNext();
      await drained();
      this.#events += 1;
      if (this.#events > EVENTS_MAX) return this.violate('the simulation ends', `not after ${EVENTS_MAX} events`);
    }
  }

  /** The sweeper runs every minute. Minutes in which nothing is due are left out. */
  #nextSweepMs(): number {
    const earliest = this.store.inside.nextDueAt();
    if (earliest === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(this.time.now(), this.#lastSweepMs + SWEEPS_EVERY_MS, Date.parse(earliest), this.#outageEndsMs());
  }

  /** The end of the current outage, in which neither workers nor the sweeper can be invoked; 0 if there is none. */
  #outageEndsMs(): number {
    const { outage } = this.#scenario;
    if (!outage) return 0;
    const sinceMs = this.time.now() - Date.parse(STORY_BEGINS_AT);
    return sinceMs >= outage.fromMs && sinceMs < outage.toMs ? Date.parse(STORY_BEGINS_AT) + outage.toMs : 0;
  }

  #sweep(atMs: number): void {
    this.time.moveTo(atMs);
    this.#lastSweepMs = atMs;
    this.#sweeping = true;
    const due = this.#scenario.plan.over ? this.#dueBy(atMs - this.#scenario.skewMs) : [];
    // EventBridge may invoke it twice.
    if (this.#scenario.scheduledForMs !== undefined && this.#random.chance(0.3)) this.#functions.sweep(() => {});
    this.#functions.sweep((ending) => {
      this.#sweeping = false;
      if (ending === 'returned') this.#checkSweep(due);
    });
  }

  #dueBy(atMs: number): { run: Run; dueAt: string }[] {
    const now = new Date(atMs).toISOString();
    return [...this.store.inside.runs()].flatMap((run) => {
      const dueAt = this.store.inside.dueAt(run);
      return dueAt !== undefined && dueAt <= now ? [{ run, dueAt }] : [];
    });
  }

  /** A sweep without a fault has sent every run that was due at its start: the run has changed, or it is postponed. */
  #checkSweep(due: { run: Run; dueAt: string }[]): void {
    for (const { run, dueAt } of due) {
      const now = this.store.inside.run(run.tenant, run.runId);
      if (now?.seq === run.seq && this.store.inside.dueAt(now) === dueAt) {
        this.violate('a sweep sends everything that is due', `${run.runId}, due since ${dueAt}`);
      }
    }
  }
}

/** Resolves after all continuations of the last event have run. */
const drained = () => new Promise<void>((resolve) => setImmediate(resolve));
