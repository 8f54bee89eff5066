import { parseArgs } from 'node:util';
import { ALL_FAULTS, type Fault } from './faults.ts';
import { type CrashPointFault, emptyTally, type Found, pointJobs, seedJobs, type Tally } from './jobs.ts';
import { runAll } from './run-jobs.ts';
import { crashPoint, scenarioOf } from './scenario.ts';
import { type Outcome, Simulation } from './simulation.ts';
import { RARE, SITUATIONS } from './situations.ts';
import type { ShapeName } from './workflow-shapes.ts';

/** Fits into three minutes on two busy cores, with every crash point. */
const SEEDS_BY_DEFAULT = 2_000;
/** With this many seeds, a fault that never occurred means that the simulation no longer injects it. */
const SEEDS_THAT_MEET_EVERY_FAULT = 500;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: String(SEEDS_BY_DEFAULT) },
    from: { type: 'string', default: '1' },
    /** Runs one seed. */
    seed: { type: 'string' },
    /** Runs one crash point, `shape:call:fault`. */
    point: { type: 'string' },
    /** Crash points of these shapes only, separated by commas; `none` for no crash points. */
    shapes: { type: 'string' },
    /** And with these faults only, separated by commas. */
    faults: { type: 'string' },
    /** Seeds with runs of these shapes only, separated by commas. */
    'seed-shapes': { type: 'string' },
    threads: { type: 'string' },
    /** Prints all events of a seed or crash point. */
    verbose: { type: 'boolean', default: false },
  },
});

process.exitCode = (values.seed ?? values.point) === undefined ? await search() : await runOne();

async function search(): Promise<number> {
  const seeds = Number(values.seeds);
  const faults = values.faults?.split(',') as CrashPointFault[] | undefined;
  const points = values.shapes === 'none' ? [] : pointJobs(values.shapes?.split(','), faults);
  const jobs = [...points, ...seedJobs(Number(values.from), seeds, values['seed-shapes']?.split(','))];
  const sum = await runAll(jobs, showProgress, values.threads === undefined ? undefined : Number(values.threads));
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[K');
  const missed = [
    ...ALL_FAULTS.filter((fault) => !sum.injected[fault]),
    ...SITUATIONS.filter((situation) => !sum.situations[situation] && !RARE.includes(situation)),
  ];
  const isIncomplete = !sum.found && seeds >= SEEDS_THAT_MEET_EVERY_FAULT && missed.length > 0;
  console.log(ALL_FAULTS.map((fault) => `${fault} ${sum.injected[fault] ?? 0}`).join(', '));
  console.log(SITUATIONS.map((situation) => `${situation} ${sum.situations[situation] ?? 0}`).join(', '));
  if (isIncomplete) console.log(`never occurred: ${missed.join(', ')}`);
  if (sum.found) showViolation(sum.found);
  console.log(summary(sum));
  return sum.found || isIncomplete ? 1 : 0;
}

async function runOne(): Promise<number> {
  const [shape = '', call, fault] = values.point?.split(':') ?? [];
  const point = call === undefined ? undefined : { call: Number(call), fault: fault as Fault };
  const scenario = values.point
    ? crashPoint(shape as ShapeName, point)
    : scenarioOf(Number(values.seed), values['seed-shapes']?.split(','));
  const outcome = await new Simulation(scenario, values.verbose ? (line) => console.log(line) : undefined).run();
  const { plan: _counted, ...shown } = scenario;
  if (values.verbose) console.log(shown);
  const found = foundIn(outcome);
  if (found) showViolation(found);
  const counts = values.point ? { seeds: 0, points: 1 } : { seeds: 1, points: 0 };
  console.log(
    summary({ ...emptyTally(), ...counts, injected: Object.fromEntries(outcome.injected), ...(found && { found }) }),
  );
  return found ? 1 : 0;
}

function foundIn({ violation, eventLog }: Outcome): Found | undefined {
  const seedShapes = values['seed-shapes'] === undefined ? '' : ` --seed-shapes ${values['seed-shapes']}`;
  const again = values.point ? `--point ${values.point}` : `--seed ${values.seed}${seedShapes}`;
  return violation && { ...violation, again, lastEvents: eventLog.last(30) };
}

function showViolation({ invariant, what, again, lastEvents }: Found): void {
  console.log(
    [...lastEvents, '', `violated: ${invariant}`, `  ${what}`, `again: npm run chaos -- ${again}`].join('\n'),
  );
}

function summary({ seeds, points, injected, found }: Tally): string {
  const faults = Object.values(injected).reduce((sum, times) => sum + times, 0);
  return `chaos: ${seeds} seeds, ${points} crash points, ${faults} faults injected, ${found ? 1 : 0} violations`;
}

function showProgress({ seeds, points }: Tally): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001b[Kchaos: ${seeds} seeds, ${points} crash points ...`);
}
