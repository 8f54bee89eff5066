import type { Run } from '../../lambdas/run/run.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { sendHttpThroughFetch } from '../fakes/http-through-fetch.ts';
import { MemoryDefinitions } from '../fakes/memory-definitions.ts';
import { MemoryEvidenceStore } from '../fakes/memory-evidence-store.ts';
import type { ApprovalFollow } from '../fakes/memory-outbox.ts';
import { MemoryPlanStore } from '../fakes/memory-plan-store.ts';
import { MemoryRunStore } from '../fakes/memory-run-store.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { ApprovalMachine } from './approval-machine.ts';
import { Approvers } from './approvers.ts';
import { Caretakers } from './caretakers.ts';
import { Crossings } from './crossings.ts';
import { define, type Published } from './defined.ts';
import { Story } from './event-lines.ts';
import type { Fault } from './faults.ts';
import { Functions, type SealMessage } from './functions.ts';
import { judgeRest } from './invariants/rest.ts';
import { Operators } from './operators.ts';
import type { Surroundings } from './ports.ts';
import { PLANNED_INCIDENT, Repeaters } from './repeaters.ts';
import type { Scenario } from './scenario.ts';
import { SeededRandom } from './seeded-random.ts';
import { Senders } from './senders.ts';
import { SimulatedPolicy } from './simulated-policy.ts';
import { SimulatedQueue } from './simulated-queue.ts';
import { SimulatedOutside } from './simulated-targets.ts';
import type { Situation } from './situations.ts';
import { StaleViews } from './stale-views.ts';
import { NEW_INCIDENT, ThirdParties } from './third-parties.ts';
import { VirtualTime } from './virtual-time.ts';
import { Witness } from './witness.ts';

const SWEEPS_EVERY_MS = 60_000;
/** Far more than any world needs: one that goes on beyond this never comes to rest. */
const EVENTS_MAX = 25_000;
/** Paused runs are resumed or canceled this often before all are canceled. */
const FINAL_ROUNDS = 3;
const SIGNER = new SeededSigner();

export interface Violation {
  invariant: string;
  what: string;
}

export interface Outcome {
  violation?: Violation;
  story: Story;
  events: number;
  calls: number;
  injected: ReadonlyMap<Fault, number>;
  situations: ReadonlyMap<Situation, number>;
  /** Status of every run but those of schedules, in the order of their ids: how many slots there are depends on time. */
  statuses: string[];
}

/** A world of its own, from its first webhook until nothing is left to do. */
export class World {
  readonly time = new VirtualTime(STORY_BEGINS_AT);
  readonly story: Story;
  /** Pages of one entry: a reader that ignores the cursor misses the second. */
  readonly store = new MemoryRunStore(undefined, { duePageMax: 1 });
  readonly evidence = new MemoryEvidenceStore();
  readonly outside: SimulatedOutside;
  readonly senders: Senders;
  readonly published: Published;
  readonly witness: Witness;
  readonly machine: ApprovalMachine;
  readonly thirdParties: ThirdParties;
  readonly #scenario: Scenario;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #operators: Operators;
  readonly #approvers: Approvers;
  readonly #caretakers: Caretakers;
  readonly #repeaters: Repeaters;
  readonly #policy: SimulatedPolicy;
  #violation: Violation | undefined;
  #events = 0;
  #lastSweepMs = 0;
  #sweeping = false;

  constructor(scenario: Scenario, print?: (line: string) => void) {
    this.#scenario = scenario;
    const { seed, settings, plan, workers } = scenario;
    this.#random = new SeededRandom(seed * 7 + 3);
    this.story = new Story(this.time, print);
    const definitions = new MemoryDefinitions();
    this.published = define(definitions, scenario);
    this.#policy = new SimulatedPolicy(this.time, definitions);
    this.witness = new Witness((invariant, what) => this.violate(invariant, what), this.store, {
      settings: () => settings,
      workflow: (run) => this.published.workflow(run),
      clocksAreSane: scenario.clocksAreSane,
      nobodyHurries: scenario.commands === 0 && scenario.nervousness === 0 && scenario.scripted.length === 0,
      time: this.time,
      skewMs: scenario.skewMs,
      isOutdated: (run) => this.published.isOutdated(run),
      policy: this.#policy,
      onAsked: (approval) => this.#approvers.asked(approval),
      onChange: (run) => {
        if (scenario.tendsEnded) this.#caretakers.ended(run);
        if (scenario.repeats) this.#repeaters.ended(run);
        if (plan.over) return;
        const { tenant, runId, status } = run;
        // Nothing makes people press a button like a step that failed.
        const pressed = status === 'failed_retryable' ? 2 * scenario.nervousness : scenario.nervousness;
        if (this.#random.chance(pressed)) this.#operators.reactTo(run);
        if (this.#random.chance(scenario.strays)) {
          steps.send({ tenant, runId }, this.#random.between(0, 8_000), undefined);
        }
      },
    });
    const crossings = new Crossings(this.time, this.#random, scenario, (line) => this.story.add(line));
    this.outside = new SimulatedOutside(this.time, crossings, this.witness, scenario.farMs);
    const steps = new SimulatedQueue<StepMessage>(this.time, this.#random, workers, (message, ended) => {
      if (this.#outageEndsMs() === 0) this.#functions.work(message, ended);
      else this.time.after(1, () => ended('died'));
    });
    const seals = new SimulatedQueue<SealMessage>(this.time, this.#random, 2, (message, ended) =>
      this.#functions.seal(message, ended),
    );
    const follows = new SimulatedQueue<ApprovalFollow>(this.time, this.#random, 2, (message, ended) =>
      this.#functions.follow(message, ended),
    );
    this.machine = new ApprovalMachine(
      this.time,
      () => this.#functions,
      ({ tenant, runId, approvalId }, ended) => {
        this.witness.approvals.waited(approvalId, this.time.now(), plan.injected.size > 0);
        if (ended === 'time_is_up') steps.send({ tenant, runId }, 0, undefined);
      },
    );
    const around: Surroundings = {
      time: this.time,
      crossings,
      store: this.store,
      definitions,
      plans: new MemoryPlanStore(),
      evidence: this.evidence,
      signer: SIGNER,
      outside: this.outside,
      policy: this.#policy,
      wake: (taskToken) => this.machine.answer(taskToken),
      ids: new CountingIds(),
      random: () => this.#random.next(),
      views: new StaleViews((count) => this.#random.between(0, count)),
      renewsTimesAsOften: scenario.renewsTimesAsOften ?? 1,
      stepQueue: steps,
      outbox: {
        dispatch: (entry, fault) => {
          const { id: entryId, tenant, runId } = entry;
          if (entry.kind === 'seal_evidence') seals.send({ entryId, tenant, runId }, 0, fault);
          else if (entry.kind === 'seal_addendum') seals.send({ entryId, tenant, runId, seq: entry.seq }, 0, fault);
          else if (entry.kind === 'start_approval') this.machine.start(entry);
          else if (entry.kind === 'follow_approval')
            follows.send({ entryId, tenant, runId, approvalId: entry.approvalId }, 0, fault);
        },
      },
      watcher: this.witness,
    };
    this.#functions = new Functions(around, this.witness, this.#random, { ...scenario, machines: workers + 2 });
    this.senders = new Senders(this.time, this.#random, this.#functions);
    this.#operators = new Operators(this.time, this.#random, this.#functions, this.store);
    this.#caretakers = new Caretakers(this.time, seed, this.#functions, this.store);
    this.#repeaters = new Repeaters(this.time, seed, this.#functions);
    this.thirdParties = new ThirdParties(this.#random, this.outside);
    this.#approvers = new Approvers(this.time, this.#random, this.#functions, {
      manners: scenario.manners,
      seen: (approvalId) => this.witness.approvals.now(approvalId),
    });
  }

  violate(invariant: string, what: string): void {
    this.story.add(`VIOLATED: ${invariant}: ${what}`);
    this.#violation ??= { invariant, what };
  }

  async run(): Promise<Outcome> {
    const { fetch: realFetch } = globalThis;
    const { timeout: realTimeout } = AbortSignal;
    globalThis.fetch = this.outside.fetch;
    const sendHttpAsBefore = sendHttpThroughFetch();
    // No real timers here: the simulated targets end requests that take too long.
    const never = new AbortController().signal;
    AbortSignal.timeout = () => never;
    try {
      await this.#live();
    } finally {
      sendHttpAsBefore();
      globalThis.fetch = realFetch;
      AbortSignal.timeout = realTimeout;
    }
    const { plan } = this.#scenario;
    const runs = [...this.store.inside.runs()].sort((a, b) => (a.runId < b.runId ? -1 : 1));
    return {
      ...(this.#violation && { violation: this.#violation }),
      story: this.story,
      events: this.#events,
      calls: plan.calls,
      injected: plan.injected,
      situations: this.witness.situations.met,
      statuses: runs.flatMap(({ status, request }) => (request?.slot === undefined ? [status] : [])),
    };
  }

  async #live(): Promise<void> {
    const { troubleMs, plan } = this.#scenario;
    this.#begin();
    this.time.after(troubleMs, () => {
      this.story.add('trouble is over');
      plan.over = true;
    });
    await this.#untilRest();
    for (let round = 1; !this.#violation && this.#operators.takeCareOfPaused(round > FINAL_ROUNDS); round += 1) {
      if (round > 2 * FINAL_ROUNDS) return this.violate('every run comes to an end', 'a paused run cannot be canceled');
      await this.#untilRest();
    }
    if (!this.#violation) judgeRest(this);
  }

  #begin(): void {
    const { shapes, tenants, deliveries, bursts, commands, troubleMs, scripted, deploys } = this.#scenario;
    const { policies, meddling, repeats } = this.#scenario;
    for (const { afterMs, rules } of policies) {
      const publish = () => {
        for (const tenant of tenants) this.#policy.publish(tenant, rules);
      };
      if (afterMs === 0) publish();
      else this.time.after(afterMs, publish);
    }
    for (const { afterMs, field } of meddling) this.time.after(afterMs, () => this.thirdParties.meddle(field));
    const { channels, issueLabels } = this.outside.systems;
    channels.set('C012345', []);
    issueLabels.set('octo-org/payments#7', ['bug']);
    for (let each = 0; each < deliveries; each += 1) {
      this.time.after(each === 0 ? 0 : this.#random.between(0, troubleMs / 2), () => {
        const { sysId } = this.senders.incident(tenants, shapes[each % shapes.length] as string);
        const fields = { ...NEW_INCIDENT, number: 'INC', sys_mod_count: '0' };
        const { incidents } = this.outside.systems;
        if (!incidents.has(sysId)) incidents.set(sysId, { fields, workNotes: [] });
      });
    }
    for (let each = 0; each < bursts; each += 1) this.senders.burst(tenants);
    for (let each = 0; each < commands; each += 1) {
      this.time.after(this.#random.between(100, troubleMs), () => this.#operators.sayAnything());
    }
    for (const { afterMs, command } of scripted) this.time.after(afterMs, () => this.#operators.insist(command));
    this.#beginSchedule();
    if (repeats) this.#beginPlan();
    if (deploys) this.time.after(this.#random.between(100, troubleMs), () => this.published.deploy());
  }

  #beginPlan(): void {
    const [tenant = ''] = this.#scenario.tenants;
    const fields = { ...NEW_INCIDENT, number: 'INC0', sys_mod_count: '0' };
    this.outside.systems.incidents.set(PLANNED_INCIDENT, { fields, workNotes: [] });
    this.#repeaters.plan(tenant, this.#scenario.shapes[0] as string);
  }

  /** It ends some sweeps after the last fault, when every slot must have been started. */
  #beginSchedule(): void {
    const { scheduledForMs, tenants, troubleMs, outage, skewMs } = this.#scenario;
    if (scheduledForMs === undefined) return;
    const now = () => new Date(this.time.now()).toISOString();
    this.witness.schedules.begin(tenants, now());
    const lateMs = 5 * SWEEPS_EVERY_MS;
    const endsMs = Math.max(scheduledForMs, troubleMs, outage?.toMs ?? 0) + lateMs;
    this.time.after(endsMs, () => this.witness.schedules.end(tenants, now(), lateMs + skewMs));
  }

  /** Keeps one appointment after the other, and sweeps when something is due, until nothing of either is left. */
  async #untilRest(): Promise<void> {
    while (!this.#violation) {
      const nextMs = this.time.nextAtMs() ?? Number.POSITIVE_INFINITY;
      const sweepMs = this.#sweeping ? Number.POSITIVE_INFINITY : this.#nextSweepMs();
      if (nextMs === Number.POSITIVE_INFINITY && sweepMs === Number.POSITIVE_INFINITY) return;
      if (sweepMs < nextMs) this.#sweep(sweepMs);
      else this.time.keepNext();
      await drained();
      this.#events += 1;
      if (this.#events > EVENTS_MAX) return this.violate('a world comes to rest', `not after ${EVENTS_MAX} events`);
    }
  }

  /** The sweeper comes every minute; when nothing is due it would find nothing, so that minute is not lived through. */
  #nextSweepMs(): number {
    let earliest: string | undefined;
    const look = (dueAt: string | undefined) => {
      if (dueAt !== undefined && (earliest === undefined || dueAt < earliest)) earliest = dueAt;
    };
    for (const run of this.store.inside.runs()) look(this.store.inside.dueAt(run));
    for (const entry of this.store.inside.outbox()) look(entry.dueAt);
    look(this.store.schedules.nextDueAt());
    if (earliest === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(this.time.now(), this.#lastSweepMs + SWEEPS_EVERY_MS, Date.parse(earliest), this.#outageEndsMs());
  }

  /** While neither workers nor the sweeper can be invoked: when that is over. Otherwise 0. */
  #outageEndsMs(): number {
    const { fromMs, toMs } = this.#scenario.outage ?? { fromMs: 0, toMs: 0 };
    const sinceMs = this.time.now() - Date.parse(STORY_BEGINS_AT);
    return sinceMs >= fromMs && sinceMs < toMs ? Date.parse(STORY_BEGINS_AT) + toMs : 0;
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
      if (ending === 'returned') this.#judgeSweep(due);
    });
  }

  #dueBy(atMs: number): { run: Run; dueAt: string }[] {
    const now = new Date(atMs).toISOString();
    return [...this.store.inside.runs()].flatMap((run) => {
      const dueAt = this.store.inside.dueAt(run);
      return dueAt !== undefined && dueAt <= now ? [{ run, dueAt }] : [];
    });
  }

  /** A sweep that nothing disturbed has sent every run that was due when it began: it was moved, or it is postponed. */
  #judgeSweep(due: { run: Run; dueAt: string }[]): void {
    for (const { run, dueAt } of due) {
      const now = this.store.inside.run(run.tenant, run.runId);
      if (now?.seq === run.seq && this.store.inside.dueAt(now) === dueAt) {
        this.violate('a sweep sends everything that is due', `${run.runId}, due since ${dueAt}`);
      }
    }
  }
}

/** Until every continuation of what just happened has run as far as it can. */
const drained = () => new Promise<void>((resolve) => setImmediate(resolve));
