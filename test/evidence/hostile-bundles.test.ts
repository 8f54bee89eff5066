import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import { onTerminal } from '../cli/command-line.ts';
import { sealedBundle } from './sealed-bundle.ts';

const bundle = await sealedBundle();
const text = bundle.document.toString();

it('a file of 1 GB is refused without reading it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hostile-'));
  try {
    const file = join(folder, 'bundle.json');
    writeFileSync(file, '{');
    // Sparse: it has the size, and needs no space.
    truncateSync(file, 1024 ** 3);
    writeFileSync(join(folder, 'bundle.dsse.json'), bundle.envelope);
    const before = process.memoryUsage().rss;
    const { exitCode, stderr } = await onTerminal(200, ['evidence', 'verify', file]);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining('the document has 1073741824 bytes; a bundle has at most'),
    ]);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 ** 2);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it.each([
  ['a deeply nested document', '['.repeat(1_000_000)],
  [
    'a deeply nested value in a bundle',
    text.replace('"writes":4', `"writes":${'['.repeat(5_000)}${']'.repeat(5_000)}`),
  ],
])('%s is unreadable', (_what, document) => {
  expect(verifyBundle({ ...bundle, document: Buffer.from(document) })).toEqual({
    verdict: 'unreadable',
    problem: 'the document nests deeper than any bundle does',
  });
});

it('brackets in texts are no nesting', () => {
  const document = Buffer.from(text.replace('"workspace":"default"', `"workspace":"${'['.repeat(200)}\\"["`));
  expect(verifyBundle({ ...bundle, document })).toMatchObject({ verdict: 'tampered', entry: 'run' });
});

it('a bundle that is cut off at any of many places is never valid, and never an error of the program', () => {
  for (let length = 0; length < bundle.document.length; length += 997) {
    const { verdict } = verifyBundle({ ...bundle, document: bundle.document.subarray(0, length) });
    expect(['tampered', 'unreadable']).toContain(verdict);
  }
});
