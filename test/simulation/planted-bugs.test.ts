import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** A fraction of what `npm run chaos` tries by default. */
const SEEDS = 250;

/** Copies of the code under test, each with one bug, tried by the real command. */
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'planted-bugs-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function plant(name: string, edits: PlantedBug['edits']): string {
  const copy = join(folder, name.replaceAll(/\W+/g, '-'));
  for (const part of ['lambdas', 'test/fakes', 'test/simulation', 'package.json']) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  for (const { file, find, replace } of edits) {
    const text = readFileSync(join(copy, file), 'utf8');
    expect(text.split(find).length - 1, `${file} has "${find}" once`).toBe(1);
    writeFileSync(
      join(copy, file),
      text.replace(find, () => replace),
    );
  }
  return copy;
}

function chaos(copy: string, shapes: string, seeds = SEEDS): Promise<{ failed: boolean; output: string }> {
  const args = ['test/simulation/chaos.ts', '--seeds', String(seeds), '--shapes', shapes, '--threads', '1'];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: copy, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ failed: error !== null, output: stdout + stderr }),
    );
  });
}

describe('chaos finds', () => {
  it('nothing in a copy without a bug', async () => {
    const { failed, output } = await chaos(plant('nothing', []), 'in-order', 40);
    expect(output).toMatch(/^chaos: \d+ seeds, \d+ crash points, \d+ faults injected, 0 violations$/m);
    expect(failed).toBe(false);
  });

  it.each(PLANTED_BUGS.map((bug) => [bug.name, bug] as const))('%s', async (name, bug) => {
    const { failed, output } = await chaos(plant(name, bug.edits), bug.shapes);
    const [, violated] = /^violated: (.*)$/m.exec(output) ?? [];
    expect(bug.violates, output.slice(-3_000)).toContain(violated);
    expect(output).toMatch(/^again: npm run chaos -- --(seed \d+|point \S+)$/m);
    expect(failed).toBe(true);
  });
});
