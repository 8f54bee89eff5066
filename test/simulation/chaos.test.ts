import { describe, expect, it } from 'vitest';
import { ALL_FAULTS, CRASH_POINT_FAULTS } from './faults.ts';
import { scenarioOf } from './scenario.ts';
import { SITUATIONS } from './situations.ts';
import { addTo, doJob, emptyTally, type Job, pointJobs, seedJobs } from './trials.ts';
import { World } from './world.ts';

/** A small part of what `npm run chaos` does; the whole takes a minute or two. */
const SEEDS = 150;
/** Met too seldom to be sure of in a small part; the whole insists on them, and faults.test.ts brings them about. */
const SELDOM: readonly string[] = ['a renewal of a lost lease is refused'];

async function doAll(jobs: Job[]) {
  const sum = emptyTally();
  for (const job of jobs) {
    addTo(sum, await doJob(job));
    if (sum.found) break;
  }
  return sum;
}

const told = ({ invariant, what, again, lastEvents }: NonNullable<ReturnType<typeof emptyTally>['found']>) =>
  [invariant, what, `npm run chaos -- ${again}`, ...lastEvents].join('\n');

describe('chaos', () => {
  it(`breaks no invariant in ${SEEDS} worlds, and meets every fault and situation there is`, async () => {
    const { seeds, found, injected, situations } = await doAll(seedJobs(1, SEEDS));
    expect(found && told(found)).toBeUndefined();
    expect(seeds).toBe(SEEDS);
    expect(ALL_FAULTS.filter((fault) => !injected[fault])).toEqual([]);
    expect(SITUATIONS.filter((situation) => !situations[situation] && !SELDOM.includes(situation))).toEqual([]);
  });

  it.each(['side-by-side', 'marked-writes'])('breaks no invariant at any crash point of a %s run', async (shape) => {
    const { points, found, injected } = await doAll(pointJobs([shape]));
    expect(found && told(found)).toBeUndefined();
    expect(points).toBeGreaterThan(100);
    expect(points % CRASH_POINT_FAULTS.length).toBe(0);
    // Every point was met: none of the calls is missing in the run with the fault.
    expect(Object.values(injected).reduce((sum, times) => sum + times, 0)).toBe(points);
  });

  it('ends runs in every terminal status', async () => {
    const statuses = new Set<string>();
    for (let seed = 1; seed <= 60; seed += 1) {
      for (const status of (await new World(scenarioOf(seed)).run()).statuses) statuses.add(status);
    }
    expect([...statuses].sort()).toEqual(['canceled', 'failed_terminal', 'needs_human', 'succeeded', 'timed_out']);
  });

  it('tells the same story for the same seed, and another for another', async () => {
    const story = async (seed: number) => {
      const lines: string[] = [];
      await new World(scenarioOf(seed), (line) => lines.push(line)).run();
      return lines.join('\n');
    };
    for (const seed of [3, 14, 159, 2653]) expect(await story(seed)).toBe(await story(seed));
    expect(await story(3)).not.toBe(await story(14));
  });
});
