import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ERROR_CODES, REQUEST_CODES } from '../../lambdas/run/errors.ts';

const runbook = readFileSync(join(import.meta.dirname, '..', '..', 'RUNBOOK.md'), 'utf8');
/** The first cell of every row of the RUNBOOK's tables. */
const explained = runbook
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split(' | ')[0] ?? '')
  .join('\n');

it.each([...ERROR_CODES, ...REQUEST_CODES])('the runbook explains %s', (code) => {
  expect(explained.includes(`\`${code}\``)).toBe(true);
});

it('the runbook explains no code that does not exist', () => {
  const known: readonly string[] = [...ERROR_CODES, ...REQUEST_CODES];
  const named = [...explained.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, code]) => code ?? '');
  expect(named.filter((code) => !known.includes(code))).toEqual([]);
});
