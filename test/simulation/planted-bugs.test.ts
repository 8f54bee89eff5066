import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** A fraction of what `npm run chaos` tries by default. */
const SEEDS = 250;

/** A copy of the code under test, with one bug at a time, tried by the real command. */
let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'planted-bugs-'));
  for (const part of ['lambdas', 'test/fakes', 'test/simulation', 'package.json']) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Gives back the way to take the bug out again. */
function plant(edits: PlantedBug['edits']): () => void {
  const before = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const text = readFileSync(join(copy, file), 'utf8');
    expect(text.split(find).length - 1, `${file} has "${find}" once`).toBe(1);
    if (!before.has(file)) before.set(file, text);
    writeFileSync(
      join(copy, file),
      text.replace(find, () => replace),
    );
  }
  return () => {
    for (const [file, text] of before) writeFileSync(join(copy, file), text);
  };
}

function chaos({ shapes, faults, worlds }: Pick<PlantedBug, 'shapes' | 'faults' | 'worlds'>, seeds = SEEDS) {
  const args = ['test/simulation/chaos.ts', '--seeds', String(seeds), '--shapes', shapes, '--threads', '1'];
  if (faults !== undefined) args.push('--faults', faults);
  if (worlds !== undefined) args.push('--worlds', worlds);
  // Half of each short try would be reading the same source again.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(copy, 'compiled') };
  return new Promise<{ failed: boolean; output: string }>((resolve) => {
    execFile(process.execPath, args, { cwd: copy, env, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ failed: error !== null, output: stdout + stderr }),
    );
  });
}

describe('chaos finds', () => {
  it('nothing in a copy without a bug', async () => {
    const { failed, output } = await chaos({ shapes: 'over-at-once' }, 30);
    expect(output).toMatch(/^chaos: \d+ seeds, \d+ crash points, \d+ faults injected, 0 violations$/m);
    expect(failed).toBe(false);
  });

  it.each(PLANTED_BUGS.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    const takeOut = plant(bug.edits);
    const { failed, output } = await chaos(bug).finally(takeOut);
    const [, violated] = /^violated: (.*)$/m.exec(output) ?? [];
    expect(bug.violates, output.slice(-3_000)).toContain(violated);
    expect(output).toMatch(/^again: npm run chaos -- --(seed \d+|point \S+)/m);
    expect(failed).toBe(true);
  });
});
