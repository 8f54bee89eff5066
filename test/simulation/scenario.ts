import type { TenantSettings } from '../../lambdas/run/caps.ts';
import type { Command } from '../../lambdas/run-changes/control-run.ts';
import type { Manners } from './approvers.ts';
import { type Fault, type FaultPlan, NoFaults, OneFault, seededFaults } from './faults.ts';
import { SeededRandom } from './seeded-random.ts';
import { SHAPE_NAMES, type ShapeName } from './shapes.ts';
import { ALL_RULES, type Rules } from './simulated-policy.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** What the lease allows for; see lambdas/run/lease.ts. */
const SMALL_SKEW_MS = 5 * SECOND_MS;
/** Fault 6: fencing must still hold, although the end of a lease is not certain. */
const WILD_SKEW_MS = 5 * MINUTE_MS;

const QUICK_MS = [1, 40] as const;
const USUALLY = { afterMs: 0, rules: 'usual' } as const;
const NORMAL_FLIGHT_MS = [20, 300] as const;
/** The next worker is still running when the paused one continues. */
const SLOW_FLIGHT_MS = [3_500, 4_990] as const;

/** The shape whose runs people resolve and roll back after their end; others join in where a seed says so. */
const TENDED: ShapeName = 'undone-after-its-end';
/** The shape whose runs people rerun, replay and plan; others join in where a seed says so. */
const REPEATED: ShapeName = 'repeated-after-its-end';

/** Everything a seed decides about a world before it begins. */
export interface Scenario {
  seed: number;
  shapes: ShapeName[];
  tenants: string[];
  deliveries: number;
  /** Pushes to one pull request within seconds, each sent by several hooks: each starts its automations once. */
  bursts: number;
  settings: TenantSettings;
  workers: number;
  /** The most by which a function's clock is off, either way. */
  skewMs: number;
  clocksAreSane: boolean;
  commands: number;
  /** How likely a person reacts at once to what happens to a run. */
  nervousness: number;
  /** How likely a change of a run is followed by a message nobody needed: a redriven dead letter, a doubled one. */
  strays: number;
  /** How long calls take when nothing is wrong: within our own cloud, and to the systems outside. */
  nearMs: readonly [from: number, to: number];
  farMs: readonly [from: number, to: number];
  /** Commands that must get through, to every run, at these times. */
  scripted: { afterMs: number; command: Command }[];
  lingers: boolean;
  /** A new version of each workflow is published while runs are under way. */
  deploys: boolean;
  manners: Manners;
  /** What policy says, from the beginning and from these times on. */
  policies: { afterMs: number; rules: Rules }[];
  /** When others change an incident, and which field of it; any, if none is named. */
  meddling: { afterMs: number; field?: string }[];
  /** From when until when neither workers nor the sweeper can be invoked. */
  outage?: { fromMs: number; toMs: number };
  /** A schedule with a slot every minute, and for how long. */
  scheduledForMs?: number;
  /** Leases are renewed so many times as often as deployed. */
  renewsTimesAsOften?: number;
  /** People resolve and roll back runs that have ended. */
  tendsEnded: boolean;
  /** People rerun and replay runs that have ended, and apply plans. */
  repeats: boolean;
  /** For how long faults and commands go on. */
  troubleMs: number;
  plan: FaultPlan;
}

/** The world of a seed, with runs of chance shapes or of these only. */
export function scenarioOf(seed: number, only?: ShapeName[]): Scenario {
  const random = new SeededRandom(seed);
  const wild = random.chance(0.1);
  const lingers = random.chance(0.3);
  const caps: TenantSettings['caps'] = {
    ...(random.chance(0.4) && { maxConcurrency: random.between(1, 4) }),
    ...(random.chance(0.15) && { maxRunsPerMinute: random.between(1, 4) }),
    ...(random.chance(0.15) && { maxWritesPerRun: random.between(1, 4) }),
  };
  return {
    seed,
    shapes: random.some(only ?? SHAPE_NAMES.filter((name) => name !== TENDED && name !== REPEATED), 3),
    tenants: random.chance(0.1) ? ['acme', 'globex'] : ['acme'],
    deliveries: random.between(1, 6),
    bursts: random.chance(0.15) ? 1 : 0,
    settings: { caps, workspaces: { first: random.between(1, 4) }, counterShards: random.pick([1, 1, 2, 3]) },
    workers: random.between(1, 5),
    skewMs: wild ? WILD_SKEW_MS : random.chance(0.6) ? SMALL_SKEW_MS : 0,
    clocksAreSane: !wild,
    commands: random.chance(0.5) ? random.between(1, 8) : 0,
    nervousness: random.pick([0, 0, 0.1, 0.4]),
    strays: random.pick([0, 0.1, 0.5]),
    nearMs: random.pick([QUICK_MS, QUICK_MS, [1, 300]]),
    farMs: random.pick([NORMAL_FLIGHT_MS, lingers ? SLOW_FLIGHT_MS : NORMAL_FLIGHT_MS, [100, 4_000]]),
    scripted: [],
    lingers,
    deploys: random.chance(0.1),
    manners: random.chance(0.8) ? 'anyone' : 'two_agree',
    policies: [
      { afterMs: 0, rules: random.chance(0.8) ? 'usual' : random.pick(ALL_RULES) },
      ...atRandom(random, random.chance(0.4) ? 3 : 0).map((afterMs) => ({ afterMs, rules: random.pick(ALL_RULES) })),
    ],
    meddling: atRandom(random, random.chance(0.3) ? 5 : 0).map((afterMs) => ({ afterMs })),
    // Of its own random: what a seed decides about the rest stays the same.
    tendsEnded: new SeededRandom(seed * 17 + 5).chance(0.3),
    repeats: only === undefined && new SeededRandom(seed * 19 + 5).chance(0.15),
    troubleMs: random.between(2, 9) * MINUTE_MS,
    plan: random.chance(0.05) ? new NoFaults() : seededFaults(new SeededRandom(seed * 31 + 7)),
    ...(random.chance(0.05) && { outage: outageAt(random.between(0, 4 * MINUTE_MS)) }),
    // Last, so that the rest of a world is the same with and without a schedule. It outlasts the trouble.
    ...(random.chance(0.2) && only === undefined && { scheduledForMs: 9 * MINUTE_MS }),
  };
}

/** Long enough for every run that is `running` to count as orphaned (002 5.4, and 30 minutes in 004). */
const outageAt = (fromMs: number) => ({ fromMs, toMs: fromMs + 32 * MINUTE_MS });

/** Times of a world's first minutes, up to so many. */
const atRandom = (random: SeededRandom, atMost: number) =>
  Array.from({ length: random.between(0, atMost + 1) }, () => random.between(0, 5 * MINUTE_MS));

/** What people do while a crash point is tried. */
const SCRIPTS: Record<
  ShapeName,
  Partial<Pick<Scenario, 'scripted' | 'manners' | 'policies' | 'meddling' | 'outage' | 'scheduledForMs'>>
> = {
  'waits-for-a-signal': {
    scripted: [{ afterMs: 40_000, command: { kind: 'signal', event: 'go', payload: null } }],
  },
  'signaled-then-asked': {
    scripted: [{ afterMs: 40_000, command: { kind: 'signal', event: 'go', payload: null } }],
  },
  'undone-if-people-agree': { scripted: [{ afterMs: 100_000, command: { kind: 'rollback' } }] },
  'waits-a-while': {
    scripted: [
      { afterMs: 20_000, command: { kind: 'pause' } },
      { afterMs: 30_000, command: { kind: 'resume' } },
    ],
  },
  'retried-by-hand': {
    scripted: [600, 900, 1_300, 2_000].map((afterMs) => ({ afterMs, command: { kind: 'retry' } })),
  },
  'workers-away': { outage: outageAt(1_000) },
  'once-per-run': { scripted: [{ afterMs: 500, command: { kind: 'cancel' } }] },
  'edited-first': { manners: 'edited_first', policies: [USUALLY, { afterMs: 30_000, rules: 'again' }] },
  'not-enough-people': { manners: 'not_enough' },
  'refused-and-paused': {
    manners: 'one_refuses',
    scripted: [{ afterMs: 90_000, command: { kind: 'rollback' } }],
  },
  'undone-by-hand': { scripted: [{ afterMs: 100_000, command: { kind: 'rollback' } }] },
  'asks-side-by-side': { policies: [USUALLY, { afterMs: 20_000, rules: 'again' }] },
  'over-at-once': { scheduledForMs: 2 * MINUTE_MS },
  'changed-by-others': { meddling: [{ afterMs: 30_000, field: 'category' }] },
  'repeated-after-its-end': {
    manners: 'edited_first',
    meddling: [25_000, 28_000, 31_000].map((afterMs) => ({ afterMs, field: 'state' })),
  },
  'refuses-drift': { meddling: [{ afterMs: 20_000, field: 'state' }] },
};

/** One run of one shape and nothing else, but for one fault at one call. */
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
    clocksAreSane: true,
    commands: 0,
    nervousness: 0,
    strays: 0,
    nearMs: QUICK_MS,
    farMs: point?.fault === 'pause' ? SLOW_FLIGHT_MS : NORMAL_FLIGHT_MS,
    scripted: [],
    lingers: point?.fault === 'pause',
    deploys: false,
    manners: 'two_agree',
    policies: [USUALLY],
    meddling: [],
    tendsEnded: shape === TENDED,
    repeats: shape === REPEATED,
    ...SCRIPTS[shape],
    troubleMs: 60 * MINUTE_MS,
    plan: point ? new OneFault(point.call, point.fault) : new NoFaults(),
  };
}
