import type { TenantSettings } from '../../lambdas/run/caps.ts';
import type { Command } from '../../lambdas/worker/control-run.ts';
import { type Fault, type FaultPlan, NoFaults, OneFault, seededFaults } from './faults.ts';
import { SeededRandom } from './seeded-random.ts';
import { SHAPES, type ShapeName } from './shapes.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** What the lease allows for; see lambdas/run/lease.ts. */
const SMALL_SKEW_MS = 5 * SECOND_MS;
/** faults.md 6: fencing must hold all the same, though nobody can say any more when a lease is over. */
const WILD_SKEW_MS = 5 * MINUTE_MS;

const QUICK_MS = [1, 40] as const;
const NORMAL_FLIGHT_MS = [20, 300] as const;

/** Everything a seed decides about a world before it begins. */
export interface Scenario {
  seed: number;
  shapes: ShapeName[];
  tenants: string[];
  deliveries: number;
  /** Deliveries come as bursts about one pull request, which start one run each burst. */
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
  /** For how long faults and commands go on. */
  troubleMs: number;
  plan: FaultPlan;
}

export function scenarioOf(seed: number): Scenario {
  const random = new SeededRandom(seed);
  const wild = random.chance(0.1);
  const caps: TenantSettings['caps'] = {
    ...(random.chance(0.4) && { maxConcurrency: random.between(1, 4) }),
    ...(random.chance(0.15) && { maxRunsPerMinute: random.between(1, 4) }),
    ...(random.chance(0.15) && { maxWritesPerRun: random.between(1, 4) }),
  };
  return {
    seed,
    shapes: random.some([...SHAPES.keys()], 3),
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
    farMs: random.pick([NORMAL_FLIGHT_MS, NORMAL_FLIGHT_MS, [100, 4_000]]),
    scripted: [],
    lingers: random.chance(0.3),
    deploys: random.chance(0.1),
    troubleMs: random.between(2, 9) * MINUTE_MS,
    plan: random.chance(0.05) ? new NoFaults() : seededFaults(new SeededRandom(seed * 31 + 7)),
  };
}

/** What people do while a crash point is tried. */
const SCRIPTS: Record<ShapeName, Scenario['scripted']> = {
  'waits-for-a-signal': [{ afterMs: 40_000, command: { kind: 'signal', event: 'go', payload: null } }],
  'waits-a-while': [
    { afterMs: 20_000, command: { kind: 'pause' } },
    { afterMs: 30_000, command: { kind: 'resume' } },
  ],
  'retried-by-hand': [600, 900, 1_300, 2_000].map((afterMs) => ({ afterMs, command: { kind: 'retry' } })),
  'once-per-run': [{ afterMs: 500, command: { kind: 'cancel' } }],
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
    farMs: NORMAL_FLIGHT_MS,
    scripted: SCRIPTS[shape] ?? [],
    lingers: point?.fault === 'pause',
    deploys: false,
    troubleMs: 60 * MINUTE_MS,
    plan: point ? new OneFault(point.call, point.fault) : new NoFaults(),
  };
}
