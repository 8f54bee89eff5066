import { parseArgs } from 'node:util';
import { ALL_FAULTS, type Fault } from './faults.ts';
import { doAll } from './in-threads.ts';
import { crashPoint, scenarioOf } from './scenario.ts';
import type { ShapeName } from './shapes.ts';
import { SELDOM, SITUATIONS } from './situations.ts';
import { type CrashPointFault, emptyTally, type Found, pointJobs, seedJobs, type Tally } from './trials.ts';
import { type Outcome, World } from './world.ts';

/** Fits into three minutes on two busy cores, with every crash point. */
const SEEDS_BY_DEFAULT = 2_000;
/** With this many seeds, a fault that was never met means that the world no longer makes it. */
const SEEDS_THAT_MEET_EVERY_FAULT = 500;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: String(SEEDS_BY_DEFAULT) },
    from: { type: 'string', default: '1' },
    /** One seed again. */
    seed: { type: 'string' },
    /** One crash point again, `shape:call:fault`. */
    point: { type: 'string' },
    /** Crash points of these shapes only, by commas; `none` for no crash points. */
    shapes: { type: 'string' },
    /** And under these faults only, by commas. */
    faults: { type: 'string' },
    /** Seeds with runs of these shapes only, by commas. */
    worlds: { type: 'string' },
    threads: { type: 'string' },
    /** Prints all events of a seed or crash point. */
    verbose: { type: 'boolean', default: false },
  },
});

process.exitCode = (values.seed ?? values.point) === undefined ? await everything() : await onceAgain();

async function everything(): Promise<number> {
  const seeds = Number(values.seeds);
  const faults = values.faults?.split(',') as CrashPointFault[] | undefined;
  const points = values.shapes === 'none' ? [] : pointJobs(values.shapes?.split(','), faults);
  const jobs = [...points, ...seedJobs(Number(values.from), seeds, values.worlds?.split(','))];
  const sum = await doAll(jobs, showProgress, values.threads === undefined ? undefined : Number(values.threads));
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[K');
  const missed = [
    ...ALL_FAULTS.filter((fault) => !sum.injected[fault]),
    ...SITUATIONS.filter((situation) => !sum.situations[situation] && !SELDOM.includes(situation)),
  ];
  const vacuous = !sum.found && seeds >= SEEDS_THAT_MEET_EVERY_FAULT && missed.length > 0;
  console.log(ALL_FAULTS.map((fault) => `${fault} ${sum.injected[fault] ?? 0}`).join(', '));
  console.log(SITUATIONS.map((situation) => `${situation} ${sum.situations[situation] ?? 0}`).join(', '));
  if (vacuous) console.log(`never met: ${missed.join(', ')}`);
  if (sum.found) showViolation(sum.found);
  console.log(summary(sum));
  return sum.found || vacuous ? 1 : 0;
}

async function onceAgain(): Promise<number> {
  const [shape = '', call, fault] = values.point?.split(':') ?? [];
  const point = call === undefined ? undefined : { call: Number(call), fault: fault as Fault };
  const scenario = values.point
    ? crashPoint(shape as ShapeName, point)
    : scenarioOf(Number(values.seed), values.worlds?.split(','));
  const outcome = await new World(scenario, values.verbose ? (line) => console.log(line) : undefined).run();
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

function foundIn({ violation, story }: Outcome): Found | undefined {
  const worlds = values.worlds === undefined ? '' : ` --worlds ${values.worlds}`;
  const again = values.point ? `--point ${values.point}` : `--seed ${values.seed}${worlds}`;
  return violation && { ...violation, again, lastEvents: story.last(30) };
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
