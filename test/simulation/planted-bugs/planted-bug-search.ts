import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Found, type Job, jobAgain, pointJobs, seedJobs } from '../jobs.ts';
import { compile, compileSimulation, ROOT } from './compiled-simulation.ts';
import foundBefore from './found-before.json' with { type: 'json' };
import type { BugSearch } from './planted-bug-thread.ts';
import type { PlantedBug } from './planted-bugs.ts';

/** Bug → the options of `npm run chaos` that found it last: tried first, to save time. `shown`: in the evidence alone. */
export interface FoundBefore {
  found: Record<string, string>;
  shown: Record<string, string>;
}
export const FOUND_BEFORE: FoundBefore = foundBefore;

/** Path → text of the files that the bug is in. */
export function textsWith({ edits }: PlantedBug): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const path = join(ROOT, file);
    const text = texts.get(path) ?? readFileSync(path, 'utf8');
    const times = text.split(find).length - 1;
    if (times !== 1) throw new Error(`${file} has "${find}" ${times} times, not once`);
    texts.set(
      path,
      text.replace(find, () => replace),
    );
  }
  return texts;
}

/** Searches for bugs, one after the other, in a thread of its own. */
export class PlantedBugSearch {
  readonly #thread: Worker;
  /** How many seeds to try after the crash points. */
  readonly #seeds: number;

  private constructor(thread: Worker, seeds: number) {
    this.#thread = thread;
    this.#seeds = seeds;
  }

  static async start(seeds: number): Promise<PlantedBugSearch> {
    const workerData = await compileSimulation();
    return new PlantedBugSearch(new Worker(new URL('./planted-bug-thread.ts', import.meta.url), { workerData }), seeds);
  }

  stop(): Promise<number> {
    return this.#thread.terminate();
  }

  /** What was found first: of all invariants, or of the watched one only. */
  async find(bug: PlantedBug, before: string | undefined, watched?: string): Promise<Found | undefined> {
    const edited = await Promise.all(
      [...textsWith(bug)].map(async ([path, text]) => [path, await compile(path, text)] as const),
    );
    this.#thread.postMessage({
      edited: new Map(edited),
      jobs: this.#jobs(bug, before).map((job) => ({ ...job, watched })),
    } satisfies BugSearch);
    const [{ found }] = (await once(this.#thread, 'message')) as [{ found?: Found }];
    return found;
  }

  /** The job that found the bug last time, then the crash points of its shapes, then seeds. */
  #jobs({ shapes, faults, seedShapes }: PlantedBug, before: string | undefined): Job[] {
    const points = shapes === 'none' ? [] : pointJobs(shapes.split(','), faults && [faults]);
    const first = before === undefined ? [] : [jobAgain(before)];
    return [...first, ...points, ...seedJobs(1, this.#seeds, seedShapes?.split(','))];
  }
}
