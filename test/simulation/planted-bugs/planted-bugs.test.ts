import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RULES_FOLLOWED } from '../observer.ts';
import { ROOT } from './compiled-simulation.ts';
import { FOUND_BEFORE, PlantedBugSearch, textsWith } from './planted-bug-search.ts';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

/** If the job that found a bug last time finds it no more. `npm run planted-bugs` searches longer, and stores the jobs. */
const SEEDS = 250;

let search: PlantedBugSearch;
beforeAll(async () => {
  search = await PlantedBugSearch.start(SEEDS);
});
afterAll(() => search.stop());

/** `npm run chaos`, with a bug or without. */
async function chaos(bug: PlantedBug | undefined, ...args: string[]): Promise<{ failed: boolean; output: string }> {
  const texts = bug ? textsWith(bug) : new Map<string, string>();
  // Within the repository, so that the bundle finds its packages.
  mkdirSync(join(ROOT, '.build'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.build', 'planted-bug-'));
  try {
    const outfile = join(folder, 'chaos.mjs');
    await build({
      entryPoints: [join(import.meta.dirname, '..', 'chaos.ts')],
      outfile,
      bundle: true,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      plugins: [
        {
          name: 'planted bug',
          setup: ({ onLoad }) =>
            onLoad({ filter: /\.ts$/ }, ({ path }) =>
              texts.has(path) ? { loader: 'ts', contents: texts.get(path) } : undefined,
            ),
        },
      ],
    });
    return await new Promise((resolve) => {
      execFile(process.execPath, [outfile, '--threads', '1', ...args], (error, stdout, stderr) =>
        resolve({ failed: error !== null, output: stdout + stderr }),
      );
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe('npm run chaos', () => {
  it('finds nothing in the code without a bug', async () => {
    const { failed, output } = await chaos(
      undefined,
      '--seeds',
      '5',
      '--shapes',
      'sequential-steps',
      '--faults',
      'lost_reply',
    );
    expect(output).toMatch(/^chaos: \d+ seeds, \d+ crash points, \d+ faults injected, 0 violations$/m);
    expect(failed).toBe(false);
  });

  it('fails when it finds a bug, and says how to see it again', async () => {
    const bug = PLANTED_BUGS.find(({ name }) => name === 'the intent is skipped') as PlantedBug;
    const { failed, output } = await chaos(bug, '--shapes', bug.shapes);
    const [, violated] = /^violated: (.*)$/m.exec(output) ?? [];
    expect(bug.violates, output.slice(-3_000)).toContain(violated);
    expect(output).toMatch(/^again: npm run chaos -- --(seed \d+|point \S+)/m);
    expect(failed).toBe(true);
  });
});

describe('chaos finds', () => {
  it.each(PLANTED_BUGS.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    const found = await search.find(bug, FOUND_BEFORE.found[bug.name]);
    expect(bug.violates, found && [found.what, ...found.lastEvents].join('\n')).toContain(found?.invariant);
    expect(found?.again).toMatch(/^--(seed \d+|point \S+)/);
  });
});

describe('the evidence alone shows', () => {
  const shown = PLANTED_BUGS.filter(({ breaksRule }) => breaksRule !== undefined);
  it.each(shown.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    const found = await search.find(bug, FOUND_BEFORE.shown[bug.name], RULES_FOLLOWED);
    expect(found?.invariant).toBe(RULES_FOLLOWED);
    expect(found?.what).toMatch(new RegExp(`rule ${bug.breaksRule} \\(`));
  });
});
