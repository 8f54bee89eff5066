import type { TenantSettings } from '../../lambdas/run/settings/caps.ts';
import type { Command } from '../../lambdas/run-changes/control/control-run.ts';
import type { ApproverBehavior } from './actors/approvers.ts';
import type { BulkScript } from './actors/bulk-operators.ts';
import type { AgentBehavior } from './actors/simulated-agents.ts';
import { SESSION_KINDS, type SessionBehavior } from './actors/simulated-sessions.ts';
import type { ThreadBehavior } from './actors/thread-writers.ts';
import { SeededRandom } from './environment/seeded-random.ts';
import { ALL_RULES, type Rules } from './environment/simulated-policy.ts';
import { type Fault, type FaultPlan, NoFaults, OneFault, randomFaults } from './faults.ts';
import {
  AGENT_SHAPES,
  MORE_SESSION_SHAPES,
  needsAgents,
  needsSessions,
  SESSION_SHAPES,
  SHAPE_NAMES,
  type ShapeName,
} from './workflow-shapes.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** The largest skew that leases tolerate; see lambdas/run/lease.ts. */
const SMALL_SKEW_MS = 5 * SECOND_MS;
/** Fault 6: fencing must still work, although the end of a lease is not certain. */
const LARGE_SKEW_MS = 5 * MINUTE_MS;

const QUICK_MS = [1, 40] as const;
const USUALLY = { afterMs: 0, rules: 'usual' } as const;
const NORMAL_REQUEST_MS = [20, 300] as const;
/** So slow that the next worker is still running when a paused one continues. */
const SLOW_REQUEST_MS = [3_500, 4_990] as const;

/** People always resolve and roll back ended runs of this shape; runs of other shapes only with some seeds. */
const CHANGED_AFTER_END: ShapeName = 'rolled-back-after-end';
/** People always rerun, replay and plan runs of this shape; runs of other shapes only with some seeds. */
const REPEATED_AFTER_END: ShapeName = 'repeated-after-end';
/** People always retry and cancel runs of this shape in bulk; runs of other shapes only with some seeds. */
const CHANGED_IN_BULK: ShapeName = 'changed-in-bulk';
/** Approvals of this shape are overdue for long, which takes many events. */
const OVERDUE: ShapeName = 'overdue-together';
/** Messages in Slack start these runs. */
export const THREAD_SHAPE: ShapeName = 'talks-in-a-thread';
/** A new shape would change the shapes of every seed. */
const NOT_RANDOM: readonly ShapeName[] = [
  ...[CHANGED_AFTER_END, REPEATED_AFTER_END, CHANGED_IN_BULK, OVERDUE, THREAD_SHAPE],
  ...AGENT_SHAPES,
  ...SESSION_SHAPES,
  ...MORE_SESSION_SHAPES,
];

/** Everything that a seed decides about a simulation before it starts. */
export interface Scenario {
  seed: number;
  shapes: ShapeName[];
  tenants: string[];
  deliveries: number;
  /** Pushes to one pull request within seconds, each sent by several hooks: each starts its automations once. */
  bursts: number;
  settings: TenantSettings;
  workers: number;
  /** The largest difference of a function's clock from the real time, in both directions. */
  skewMs: number;
  clocksAreClose: boolean;
  commands: number;
  /** How likely an operator sends a command after a change of a run. */
  commandChance: number;
  /** How likely a superfluous message follows a change of a run, e.g. a redriven dead letter. */
  extraMessageChance: number;
  /** How long calls take without a fault: calls to AWS, and requests to targets. */
  portDelayMs: readonly [from: number, to: number];
  targetDelayMs: readonly [from: number, to: number];
  /** Commands to every run at these times, repeated until they succeed. */
  scripted: { afterMs: number; command: Command }[];
  outlivesTimeout: boolean;
  /** A new version of each workflow is published while runs are open. */
  deploys: boolean;
  approverBehavior: ApproverBehavior;
  /** The policies from these times on. */
  policies: { afterMs: number; rules: Rules }[];
  /** When other people change an incident, and which field; a random one by default. */
  incidentEdits: { afterMs: number; field?: string }[];
  /** From when until when neither workers nor the sweeper can be invoked. */
  outage?: { fromMs: number; toMs: number };
  /** A schedule with a slot every minute, and for how long. */
  scheduledForMs?: number;
  /** How many times as often as deployed leases are renewed. */
  renewsTimesAsOften?: number;
  /** People resolve and roll back runs that have ended. */
  changesEndedRuns: boolean;
  /** People rerun and replay runs that have ended, and apply plans. */
  repeats: boolean;
  /** Actions on many runs. */
  bulk: BulkScript[];
  /** How long there are faults and commands. */
  faultsForMs: number;
  /** Agents that run the commands of shapes that have some. */
  agents?: AgentBehavior;
  /** The agent in which sessions of shapes that have some run. */
  sessions?: SessionBehavior;
  /** From when until when agents are switched off. */
  agentsOff?: Period;
  /** From when until when writes are switched off, in order. */
  writesOff?: Period[];
  /** People write to the app in threads. */
  threads?: ThreadBehavior;
  plan: FaultPlan;
}

interface Period {
  fromMs: number;
  toMs: number;
}

/** The scenario of a seed, with runs of random shapes or of these only. */
export function scenarioOf(seed: number, only?: ShapeName[]): Scenario {
  const random = new SeededRandom(seed);
  const largeSkew = random.chance(0.1);
  const outlivesTimeout = random.chance(0.3);
  const caps: TenantSettings['caps'] = {
    ...(random.chance(0.4) && { maxConcurrency: random.between(1, 4) }),
    ...(random.chance(0.15) && { maxRunsPerMinute: random.between(1, 4) }),
    ...(random.chance(0.15) && { maxWritesPerRun: random.between(1, 4) }),
  };
  const moreSessions = moreSessionsOf(seed, only);
  const agents = agentsOf(seed, only, moreSessions);
  const threads = threadsOf(seed, only);
  const sessions = sessionsOf(seed, only, moreSessions);
  return {
    seed,
    shapes: [
      // First, because the first deliveries have the first shapes.
      ...(agents.shapes ?? []),
      ...(sessions.shapes ?? []),
      ...moreSessions,
      ...random.some(only ?? SHAPE_NAMES.filter((name) => !NOT_RANDOM.includes(name)), 3),
    ],
    tenants: random.chance(0.1) ? ['acme', 'globex'] : ['acme'],
    deliveries: random.between(1, 6),
    bursts: random.chance(0.15) ? 1 : 0,
    settings: {
      caps,
      workspaces: { first: random.between(1, 4) },
      counterShards: random.pick([1, 1, 2, 3]),
      // Approvals that nobody decides are open for a day.
      overdueDigestMinutes: 8 * 60,
      ...(threads && { slackAutomation: THREAD_SHAPE }),
    },
    workers: random.between(1, 5),
    skewMs: largeSkew ? LARGE_SKEW_MS : random.chance(0.6) ? SMALL_SKEW_MS : 0,
    clocksAreClose: !largeSkew,
    commands: random.chance(0.5) ? random.between(1, 8) : 0,
    commandChance: random.pick([0, 0, 0.1, 0.4]),
    extraMessageChance: random.pick([0, 0.1, 0.5]),
    portDelayMs: random.pick([QUICK_MS, QUICK_MS, [1, 300]]),
    targetDelayMs: random.pick([
      NORMAL_REQUEST_MS,
      outlivesTimeout ? SLOW_REQUEST_MS : NORMAL_REQUEST_MS,
      [100, 4_000],
    ]),
    scripted: [],
    outlivesTimeout,
    deploys: random.chance(0.1),
    approverBehavior: random.chance(0.8) ? 'random' : 'two_approve',
    policies: [
      { afterMs: 0, rules: random.chance(0.8) ? 'usual' : random.pick(ALL_RULES) },
      ...atRandom(random, random.chance(0.4) ? 3 : 0).map((afterMs) => ({ afterMs, rules: random.pick(ALL_RULES) })),
    ],
    incidentEdits: atRandom(random, random.chance(0.3) ? 5 : 0).map((afterMs) => ({ afterMs })),
    // With their own random numbers, so that the rest of a scenario does not depend on them.
    changesEndedRuns: new SeededRandom(seed * 17 + 5).chance(0.3),
    repeats: only === undefined && new SeededRandom(seed * 19 + 5).chance(0.15),
    bulk: only === undefined ? bulkOf(new SeededRandom(seed * 23 + 5)) : [],
    faultsForMs: random.between(2, 9) * MINUTE_MS,
    plan: random.chance(0.05) ? new NoFaults() : randomFaults(new SeededRandom(seed * 31 + 7)),
    ...(random.chance(0.05) && { outage: outageAt(random.between(0, 4 * MINUTE_MS)) }),
    // Last, so that the rest of a scenario does not depend on it. The schedule continues after the last fault.
    ...(random.chance(0.2) && only === undefined && { scheduledForMs: 9 * MINUTE_MS }),
    ...(agents.behavior && { agents: agents.behavior }),
    ...(sessions.behavior && { sessions: sessions.behavior }),
    ...(agents.off && { agentsOff: agents.off }),
    ...(threads && { threads }),
    ...writesOffAt(seed),
  };
}

/** With their own random numbers, as agents. */
function threadsOf(seed: number, only: ShapeName[] | undefined): ThreadBehavior | undefined {
  const random = new SeededRandom(seed * 41 + 3);
  if (only ? !only.includes(THREAD_SHAPE) : !random.chance(0.1)) return undefined;
  return { perTenant: random.between(1, 3), runsPerThread: random.between(1, 3), disturbs: random.chance(0.7) };
}

/** With their own random numbers, so that the rest of a scenario does not depend on them. */
function writesOffAt(seed: number): Pick<Scenario, 'writesOff'> {
  const random = new SeededRandom(seed * 37 + 5);
  if (!random.chance(0.25)) return {};
  const writesOff: Period[] = [];
  for (let fromMs = random.between(0, MINUTE_MS); writesOff.length < 4 && fromMs < 6 * MINUTE_MS; ) {
    // Sometimes longer than the deadline of a run.
    const toMs = fromMs + (random.chance(0.1) ? 150 * MINUTE_MS : random.between(SECOND_MS, 3 * MINUTE_MS));
    writesOff.push({ fromMs, toMs });
    fromMs = toMs + random.between(SECOND_MS, MINUTE_MS);
  }
  return { writesOff };
}

function bulkOf(random: SeededRandom): BulkScript[] {
  if (!random.chance(0.2)) return [];
  const scripts = Array.from({ length: random.between(1, 4) }, () => ({
    afterMs: random.between(5 * SECOND_MS, 9 * MINUTE_MS),
    action: random.pick(['cancel', 'retry', 'retry', 'rerun', 'resolve'] as const),
    ...(random.chance(0.1) && { isTamperedWith: true as const }),
  }));
  // Two people resolve the same runs at the same time, in different ways.
  return scripts.flatMap((script) =>
    script.action === 'resolve' ? [script, { ...script, resolvesAs: 'succeeded' as const }] : [script],
  );
}

/** With their own random numbers, so that the rest of a scenario does not depend on them. */
function agentsOf(
  seed: number,
  only: ShapeName[] | undefined,
  besides: ShapeName[],
): { shapes?: ShapeName[]; behavior?: AgentBehavior; off?: { fromMs: number; toMs: number } } {
  const random = new SeededRandom(seed * 23 + 11);
  const shapes = only ? [] : random.chance(0.3) ? random.some(AGENT_SHAPES, 2) : [];
  if (shapes.length === 0 && ![...besides, ...(only ?? [])].some(needsAgents)) return {};
  const behavior: AgentBehavior = {
    perTenant: random.between(1, 4),
    slots: random.between(1, 3),
    commandMs: random.pick([
      [200, 3_000],
      [1_000, 40_000],
      [20_000, 100_000],
    ]),
    failureChance: random.pick([0, 0.1, 0.4]),
    refusalChance: random.pick([0, 0, 0.2]),
    ...(random.chance(0.3) && { secondProcessAfterMs: random.between(0, 3 * MINUTE_MS) }),
  };
  const fromMs = random.between(0, 2 * MINUTE_MS);
  const off = random.chance(0.15) ? { fromMs, toMs: fromMs + random.between(10_000, 4 * MINUTE_MS) } : undefined;
  const restartsSoon = random.chance(0.3);
  return { shapes, behavior: { ...behavior, restartsSoon }, ...(off && { off }) };
}

/** With their own random numbers, too. */
function moreSessionsOf(seed: number, only: ShapeName[] | undefined): ShapeName[] {
  const random = new SeededRandom(seed * 43 + 29);
  return only === undefined && random.chance(0.1) ? random.some(MORE_SESSION_SHAPES, 2) : [];
}

/** With their own random numbers, too. */
function sessionsOf(
  seed: number,
  only: ShapeName[] | undefined,
  besides: ShapeName[],
): { shapes?: ShapeName[]; behavior?: SessionBehavior } {
  const random = new SeededRandom(seed * 37 + 17);
  const shapes = only ? [] : random.chance(0.25) ? random.some(SESSION_SHAPES, 2) : [];
  if (shapes.length === 0 && ![...besides, ...(only ?? [])].some(needsSessions)) return {};
  const workMs = random.pick([
    [200, 3_000],
    [1_000, 40_000],
    [60_000, 400_000],
  ] as const);
  return { shapes, behavior: { kinds: random.chance(0.4) ? ['works'] : SESSION_KINDS, workMs } };
}

/** Long enough for every run that is `running` to count as orphaned (002 5.4, and 30 minutes in 004). */
const outageAt = (fromMs: number) => ({ fromMs, toMs: fromMs + 32 * MINUTE_MS });

/** At most this many random times of the first minutes. */
const atRandom = (random: SeededRandom, atMost: number) =>
  Array.from({ length: random.between(0, atMost + 1) }, () => random.between(0, 5 * MINUTE_MS));

/** A person cancels the session. */
const CANCELED: Pick<Scenario, 'scripted'> = {
  scripted: [{ afterMs: 60_000, command: { kind: 'cancel_session', reason: 'works too long' } }],
};

/** What else happens while a crash point of this shape is tried. */
const SETTINGS_OF_SHAPE: Record<
  ShapeName,
  Partial<
    Pick<
      Scenario,
      | 'scripted'
      | 'bulk'
      | 'deliveries'
      | 'approverBehavior'
      | 'policies'
      | 'incidentEdits'
      | 'outage'
      | 'scheduledForMs'
      | 'settings'
      | 'agents'
      | 'threads'
      | 'sessions'
    >
  >
> = {
  'waits-for-a-signal': {
    scripted: [{ afterMs: 40_000, command: { kind: 'signal', event: 'go', payload: null } }],
  },
  'signal-then-approval': {
    scripted: [{ afterMs: 40_000, command: { kind: 'signal', event: 'go', payload: null } }],
  },
  'rollback-needs-approval': { scripted: [{ afterMs: 100_000, command: { kind: 'rollback' } }] },
  'waits-90-seconds': {
    scripted: [
      { afterMs: 20_000, command: { kind: 'pause' } },
      { afterMs: 30_000, command: { kind: 'resume' } },
    ],
  },
  'retried-by-operator': {
    scripted: [600, 900, 1_300, 2_000].map((afterMs) => ({ afterMs, command: { kind: 'retry' } })),
  },
  'workers-unavailable': { outage: outageAt(1_000) },
  'once-per-run': { scripted: [{ afterMs: 500, command: { kind: 'cancel' } }] },
  'edited-first': { approverBehavior: 'edited_first', policies: [USUALLY, { afterMs: 30_000, rules: 'same_rules' }] },
  'quorum-not-reached': { approverBehavior: 'not_enough' },
  'talks-in-a-thread': {
    deliveries: 0,
    threads: { perTenant: 1, runsPerThread: 2, disturbs: false },
    settings: { caps: {}, workspaces: {}, counterShards: 1, slackAutomation: THREAD_SHAPE },
  },
  'overdue-together': {
    approverBehavior: 'late',
    settings: { caps: {}, workspaces: {}, counterShards: 1, overdueDigestMinutes: 10 },
  },
  'rejected-and-paused': {
    approverBehavior: 'one_rejects',
    scripted: [{ afterMs: 90_000, command: { kind: 'rollback' } }],
  },
  'rolled-back-by-operator': { scripted: [{ afterMs: 100_000, command: { kind: 'rollback' } }] },
  'parallel-approvals': { policies: [USUALLY, { afterMs: 20_000, rules: 'same_rules' }] },
  'ends-at-once': { scheduledForMs: 2 * MINUTE_MS },
  'changed-by-others': { incidentEdits: [{ afterMs: 30_000, field: 'category' }] },
  'repeated-after-end': {
    approverBehavior: 'edited_first',
    incidentEdits: [25_000, 28_000, 31_000].map((afterMs) => ({ afterMs, field: 'state' })),
  },
  'changed-in-bulk': {
    deliveries: 3,
    // Deliveries arrive within half an hour.
    bulk: [
      { afterMs: 31 * MINUTE_MS, action: 'retry' },
      { afterMs: 33 * MINUTE_MS, action: 'cancel', isTamperedWith: true },
      { afterMs: 35 * MINUTE_MS, action: 'cancel' },
    ],
  },
  // An operator retries a command whose agent is lost; the agent reports its result while another one runs the command.
  'agent-pauses': {
    scripted: [{ afterMs: 60_000, command: { kind: 'retry' } }],
    agents: { perTenant: 2, slots: 2, commandMs: [20_000, 70_000], failureChance: 0, refusalChance: 0 },
  },
  // An agent is started again before the lease of its command ends, and reports that the result is unknown.
  'agent-undone': {
    agents: {
      ...{ perTenant: 2, slots: 2, commandMs: [8_000, 25_000], failureChance: 0, refusalChance: 0 },
      restartsSoon: true,
    },
  },
  'session-lost': {
    sessions: { kinds: ['dies', 'ends_early', 'disappears', 'silent', 'late'], workMs: [1_000, 40_000] },
  },
  'command-session-ends-early': { sessions: { kinds: ['ends_early'], workMs: [1_000, 40_000] } },
  'command-session-canceled': { ...CANCELED, sessions: { kinds: ['silent'], workMs: [1_000, 40_000] } },
  'canceled-session': { ...CANCELED, sessions: { kinds: ['late'], workMs: [1_000, 40_000] } },
  'command-session-silent': { sessions: { kinds: ['silent'], workMs: [1_000, 40_000] } },
  'session-parallel': { sessions: { kinds: ['races_itself', 'completes_twice'], workMs: [1_000, 70_000] } },
  'refuses-drift': { incidentEdits: [{ afterMs: 20_000, field: 'state' }] },
};

/** One run of one shape, with one fault at one call. */
export function crashPoint(shape: ShapeName, point?: { call: number; fault: Fault }): Scenario {
  return {
    seed: 1,
    shapes: [shape],
    tenants: ['acme'],
    deliveries: 1,
    bursts: 0,
    settings: { caps: { maxConcurrency: 2 }, workspaces: {}, counterShards: 1 },
    workers: 2,
    skewMs: 0,
    clocksAreClose: true,
    commands: 0,
    commandChance: 0,
    extraMessageChance: 0,
    portDelayMs: QUICK_MS,
    targetDelayMs: point?.fault === 'pause' ? SLOW_REQUEST_MS : NORMAL_REQUEST_MS,
    scripted: [],
    outlivesTimeout: point?.fault === 'pause',
    deploys: false,
    approverBehavior: 'two_approve',
    policies: [USUALLY],
    incidentEdits: [],
    changesEndedRuns: shape === CHANGED_AFTER_END,
    repeats: shape === REPEATED_AFTER_END,
    bulk: [],
    ...(needsAgents(shape) && {
      agents: { perTenant: 2, slots: 2, commandMs: [1_000, 15_000], failureChance: 0, refusalChance: 0 },
    }),
    ...(needsSessions(shape) && {
      sessions: { kinds: ['works'] as const, workMs: [1_000, 15_000] as const },
    }),
    ...SETTINGS_OF_SHAPE[shape],
    faultsForMs: 60 * MINUTE_MS,
    plan: point ? new OneFault(point.call, point.fault) : new NoFaults(),
  };
}
