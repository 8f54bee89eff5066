import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type BuildContext, context } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';
import { type Found, type Job, pointJobs, seedJobs, type Tally } from './trials.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** A fraction of what `npm run chaos` tries by default. */
const SEEDS = 250;

/** The bug in the code that is bundled next; esbuild reads only the changed files again. */
let planted: PlantedBug['edits'] = [];
let folder: string;
let build: BuildContext;
beforeAll(async () => {
  // Within the repository, so that the bundles find its node_modules.
  mkdirSync(join(ROOT, '.build'), { recursive: true });
  folder = mkdtempSync(join(ROOT, '.build', 'planted-bugs-'));
  build = await context({
    entryPoints: ['chaos-thread', 'chaos'].map((name) => join(import.meta.dirname, `${name}.ts`)),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // All in one file, which a thread loads several times faster than the packages; these two are loaded when first used.
    external: ['@cedar-policy/*', '@open-policy-agent/*'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    platform: 'node',
    format: 'esm',
    plugins: [
      {
        name: 'planted bug',
        setup: ({ onLoad }) => {
          const files = new Set(PLANTED_BUGS.flatMap(({ edits }) => edits.map(({ file }) => file)));
          const filter = new RegExp(`/(${[...files].join('|').replaceAll('.', '\\.')})$`);
          onLoad({ filter }, ({ path }) => ({ loader: 'ts', contents: withBug(path) }));
        },
      },
    ],
  });
});
afterAll(async () => {
  await build.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function withBug(path: string): string {
  const edits = planted.filter(({ file }) => path === join(ROOT, file));
  return edits.reduce((text, { find, replace }) => text.replace(find, () => replace), readFileSync(path, 'utf8'));
}

async function bundle(edits: PlantedBug['edits']): Promise<void> {
  for (const { file, find } of edits) {
    const times = readFileSync(join(ROOT, file), 'utf8').split(find).length - 1;
    expect(times, `${file} has "${find}" once`).toBe(1);
  }
  planted = edits;
  await build.rebuild();
}

/** The job that found the bug last time, then the crash points of its shapes, then worlds. */
function jobs({ foundBy, shapes, faults, worlds }: PlantedBug): Job[] {
  const points = shapes === 'none' ? [] : pointJobs(shapes.split(','), faults && [faults]);
  return [...(foundBy ? [foundBy] : []), ...points, ...seedJobs(1, SEEDS, worlds?.split(','))];
}

async function search(all: Job[]): Promise<Found | undefined> {
  const thread = new Worker(join(folder, 'chaos-thread.mjs'));
  try {
    for (const job of all) {
      thread.postMessage(job);
      const [{ found }] = (await once(thread, 'message')) as [Tally];
      if (found) return found;
    }
    return undefined;
  } finally {
    await thread.terminate();
  }
}

/** `npm run chaos`, with the bug that is planted. */
function chaos(...args: string[]): Promise<{ failed: boolean; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(folder, 'chaos.mjs'), '--threads', '1', ...args], (error, stdout, stderr) =>
      resolve({ failed: error !== null, output: stdout + stderr }),
    );
  });
}

describe('npm run chaos', () => {
  it('finds nothing in the code without a bug', async () => {
    await bundle([]);
    const { failed, output } = await chaos('--seeds', '5', '--shapes', 'in-order', '--faults', 'lost_reply');
    expect(output).toMatch(/^chaos: \d+ seeds, \d+ crash points, \d+ faults injected, 0 violations$/m);
    expect(failed).toBe(false);
  });

  it('fails when it finds a bug, and says how to see it again', async () => {
    const bug = PLANTED_BUGS.find(({ name }) => name === 'the intent is skipped') as PlantedBug;
    await bundle(bug.edits);
    const { failed, output } = await chaos('--shapes', bug.shapes);
    const [, violated] = /^violated: (.*)$/m.exec(output) ?? [];
    expect(bug.violates, output.slice(-3_000)).toContain(violated);
    expect(output).toMatch(/^again: npm run chaos -- --(seed \d+|point \S+)/m);
    expect(failed).toBe(true);
  });
});

describe('chaos finds', () => {
  it.each(PLANTED_BUGS.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    await bundle(bug.edits);
    const found = await search(jobs(bug));
    expect(bug.violates, found && [found.what, ...found.lastEvents].join('\n')).toContain(found?.invariant);
    expect(found?.again).toMatch(/^--(seed \d+|point \S+)/);
  });
});
