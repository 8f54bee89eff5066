import { CRASH_POINT_FAULTS, type Fault } from './faults.ts';
import { crashPoint, scenarioOf } from './scenario.ts';
import { SHAPE_NAMES, type ShapeName, shapeOf } from './shapes.ts';
import type { Situation } from './situations.ts';
import { type Outcome, type Violation, World } from './world.ts';

export type CrashPointFault = (typeof CRASH_POINT_FAULTS)[number];

/** A piece of work that one thread does at a time: some seeds, or every call of one shape under one fault. */
export type Job =
  | { seeds: { from: number; to: number; only?: ShapeName[] } }
  | { points: { shape: ShapeName; fault: CrashPointFault /** This call only. */; call?: number } };

export interface Found extends Violation {
  /** How to see it again. */
  again: string;
  lastEvents: string[];
}

export interface Tally {
  seeds: number;
  points: number;
  injected: Partial<Record<Fault, number>>;
  situations: Partial<Record<Situation, number>>;
  found?: Found;
}

const LAST_EVENTS = 30;

export const emptyTally = (): Tally => ({ seeds: 0, points: 0, injected: {}, situations: {} });

export function addTo(sum: Tally, { seeds, points, injected, situations, found }: Tally): void {
  sum.seeds += seeds;
  sum.points += points;
  for (const [fault, times] of Object.entries(injected) as [Fault, number][]) {
    sum.injected[fault] = (sum.injected[fault] ?? 0) + times;
  }
  for (const [situation, times] of Object.entries(situations) as [Situation, number][]) {
    sum.situations[situation] = (sum.situations[situation] ?? 0) + times;
  }
  sum.found ??= found;
}

/** Every crash point there is: each call of a run of each shape, under each fault. */
export function pointJobs(
  shapes: Iterable<ShapeName> = SHAPE_NAMES,
  faults: readonly CrashPointFault[] = CRASH_POINT_FAULTS,
): Job[] {
  return [...shapes].flatMap((shape) => faults.map((fault) => ({ points: { shape, fault } })));
}

export function seedJobs(from: number, count: number, only?: ShapeName[], perJob = 20): Job[] {
  return Array.from({ length: Math.ceil(count / perJob) }, (_, job) => ({
    seeds: { from: from + job * perJob, to: Math.min(from + (job + 1) * perJob, from + count), only },
  }));
}

/** Does a job, up to the first violation. */
export async function doJob(job: Job): Promise<Tally> {
  const tally = emptyTally();
  if ('points' in job) await tryPoints(job.points, tally);
  else
    for (let seed = job.seeds.from; seed < job.seeds.to && !tally.found; seed += 1) {
      const { only } = job.seeds;
      const outcome = await new World(scenarioOf(seed, only)).run();
      count(tally, outcome, `--seed ${seed}${only ? ` --worlds ${only.join()}` : ''}`);
      tally.seeds += 1;
    }
  return tally;
}

async function tryPoints(
  { shape, fault, call: only }: Extract<Job, { points: unknown }>['points'],
  tally: Tally,
): Promise<void> {
  const undisturbed = await new World(crashPoint(shape)).run();
  count(tally, undisturbed, `--point ${shape}`);
  const [first, last] = only === undefined ? [1, undisturbed.calls] : [only, only];
  for (let call = first; call <= last && !tally.found; call += 1) {
    const outcome = await new World(crashPoint(shape, { call, fault })).run();
    count(tally, { ...outcome, ...differs(shape, undisturbed, outcome) }, `--point ${shape}:${call}:${fault}`);
    tally.points += 1;
  }
}

/**
 * One fault is survived, not just endured: the run ends as it would have, or asks for a human where nobody can know.
 * Where people give commands or change things meanwhile, or a step may be tried only once, any end will do; and policy that cannot
 * decide has denied something.
 */
function differs(
  shape: ShapeName,
  undisturbed: Outcome,
  { statuses, violation, injected }: Outcome,
): { violation?: Violation } {
  const triedOnce = shapeOf(shape).steps.some(({ retry }) => retry?.attempts === 1);
  const { scripted, meddling, tendsEnded, repeats } = crashPoint(shape);
  const commanded =
    tendsEnded || repeats || scripted.length > 0 || meddling.length > 0 || undisturbed.statuses.includes('canceled');
  const undecided = injected.has('policy_error') || injected.has('policy_slow');
  if (violation || triedOnce || commanded || undecided) return {};
  const same = statuses.length === undisturbed.statuses.length;
  const fine = same && statuses.every((status, at) => status === undisturbed.statuses[at] || status === 'needs_human');
  if (fine) return {};
  const what = `ended as ${statuses.join(', ') || 'nothing'}, without a fault as ${undisturbed.statuses.join(', ')}`;
  return { violation: { invariant: 'one fault does not change how a run ends', what } };
}

function count(tally: Tally, { injected, situations, violation, story }: Outcome, again: string): void {
  const found = violation && { ...violation, again, lastEvents: story.last(LAST_EVENTS) };
  addTo(tally, {
    ...emptyTally(),
    injected: Object.fromEntries(injected),
    situations: Object.fromEntries(situations),
    ...(found && { found }),
  });
}
