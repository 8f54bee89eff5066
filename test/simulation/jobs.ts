import { CRASH_POINT_FAULTS, type Fault } from './faults.ts';
import { crashPoint, scenarioOf } from './scenario.ts';
import { type Outcome, Simulation, type Violation } from './simulation.ts';
import type { Situation } from './situations.ts';
import { needsAgents, needsSessions, SHAPE_NAMES, type ShapeName, workflowOfShape } from './workflow-shapes.ts';

export type CrashPointFault = (typeof CRASH_POINT_FAULTS)[number];

/** What one thread does at a time: some seeds, or every call of one shape with one fault. */
export type Job = { watched?: string } & (
  | { seeds: { from: number; to: number; only?: ShapeName[] } }
  | {
      points: {
        shape: ShapeName;
        fault: CrashPointFault /** This call only. */;
        call?: number /** Each nth call only. */;
        every?: number;
      };
    }
);

export interface Found extends Violation {
  /** The options of `npm run chaos` that show it again. */
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

/** All crash points: each call, or each nth call, of a run of each shape, with each fault. */
export function pointJobs(
  shapes: Iterable<ShapeName> = SHAPE_NAMES,
  faults: readonly CrashPointFault[] = CRASH_POINT_FAULTS,
  every = 1,
): Job[] {
  return [...shapes].flatMap((shape) => faults.map((fault) => ({ points: { shape, fault, every } })));
}

export function seedJobs(from: number, count: number, only?: ShapeName[], perJob = 20): Job[] {
  return Array.from({ length: Math.ceil(count / perJob) }, (_, job) => ({
    seeds: { from: from + job * perJob, to: Math.min(from + (job + 1) * perJob, from + count), only },
  }));
}

/** The job that these options of `npm run chaos` describe (`Found.again`). */
export function jobAgain(again: string): Job {
  const [, shape, call, fault] = /^--point ([^:]+)(?::(\d+):(\w+))?$/.exec(again) ?? [];
  if (shape !== undefined) {
    return { points: { shape, fault: (fault ?? 'crash_before') as CrashPointFault, call: Number(call ?? 1) } };
  }
  const [, seed, only] = /^--seed (\d+)(?: --seed-shapes (\S+))?$/.exec(again) ?? [];
  if (seed === undefined) throw new Error(`no seed and no crash point: ${again}`);
  return { seeds: { from: Number(seed), to: Number(seed) + 1, only: only?.split(',') } };
}

/** Runs a job up to the first violation. */
export async function runJob(job: Job): Promise<Tally> {
  const tally = emptyTally();
  const { watched } = job;
  if ('points' in job) await tryPoints(job.points, tally, watched);
  else
    for (let seed = job.seeds.from; seed < job.seeds.to && !tally.found; seed += 1) {
      const { only } = job.seeds;
      const outcome = await new Simulation(scenarioOf(seed, only), undefined, watched).run();
      count(tally, outcome, `--seed ${seed}${only ? ` --seed-shapes ${only.join()}` : ''}`);
      tally.seeds += 1;
    }
  return tally;
}

async function tryPoints(
  { shape, fault, call: only, every = 1 }: Extract<Job, { points: unknown }>['points'],
  tally: Tally,
  watched?: string,
): Promise<void> {
  const undisturbed = await new Simulation(crashPoint(shape), undefined, watched).run();
  count(tally, undisturbed, `--point ${shape}`);
  const [first, last] = only === undefined ? [1, undisturbed.calls] : [only, only];
  for (let call = first; call <= last && !tally.found; call += every) {
    const outcome = await new Simulation(crashPoint(shape, { call, fault }), undefined, watched).run();
    count(
      tally,
      { ...outcome, ...(watched === undefined && differs(shape, undisturbed, outcome)) },
      `--point ${shape}:${call}:${fault}`,
    );
    tally.points += 1;
  }
}

/**
 * One fault must not change how a run ends, except to needs_human if an outcome is unknown. Not checked where people send
 * commands or change incidents, where a step has one attempt only, and where policy could not decide and so denied a call.
 */
function differs(
  shape: ShapeName,
  undisturbed: Outcome,
  { statuses, violation, injected }: Outcome,
): { violation?: Violation } {
  const triedOnce = workflowOfShape(shape).steps.some(({ retry }) => retry?.attempts === 1);
  const { scripted, incidentEdits, changesEndedRuns, repeats, bulk } = crashPoint(shape);
  const commanded =
    changesEndedRuns ||
    repeats ||
    scripted.length > 0 ||
    bulk.length > 0 ||
    incidentEdits.length > 0 ||
    undisturbed.statuses.includes('canceled');
  const undecided = injected.has('policy_error') || injected.has('policy_slow');
  // A lost agent or session fails its step.
  const isOutside = needsAgents(shape) || needsSessions(shape);
  if (violation || triedOnce || commanded || undecided || isOutside) return {};
  const same = statuses.length === undisturbed.statuses.length;
  const fine = same && statuses.every((status, at) => status === undisturbed.statuses[at] || status === 'needs_human');
  if (fine) return {};
  const what = `ended as ${statuses.join(', ') || 'nothing'}, without a fault as ${undisturbed.statuses.join(', ')}`;
  return { violation: { invariant: 'one fault does not change how a run ends', what } };
}

/** Adds the outcome of one simulation, and how to see it again. */
export function count(tally: Tally, { injected, situations, violation, eventLog }: Outcome, again: string): void {
  const found = violation && { ...violation, again, lastEvents: eventLog.last(LAST_EVENTS) };
  addTo(tally, {
    ...emptyTally(),
    injected: Object.fromEntries(injected),
    situations: Object.fromEntries(situations),
    ...(found && { found }),
  });
}
