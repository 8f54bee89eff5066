import { expect, it } from 'vitest';
import { benchOptions } from '../../bench/options.ts';

it('the bench shows its options', () => {
  const { print, exitCode } = benchOptions(['--help']);
  expect(exitCode).toBe(0);
  for (const option of ['--runs N', '--stage NAME', '--cold-start']) expect(print).toContain(`  ${option} `);
});

it.each([
  ['--foo', /\n\nunknown option --foo; known: --json, --runs, /],
  ['--grwoth', /\n\nunknown option --grwoth; did you mean --growth\?$/],
  ['--runs', /\n\nOption '--runs <value>' argument missing$/],
])('the bench refuses %s and says what it takes', (option, text) => {
  expect(benchOptions([option])).toEqual({ print: expect.stringMatching(text), exitCode: 2 });
});

it('the bench reads its options', () => {
  expect(benchOptions(['--runs', '5', '--no-socket']).values).toMatchObject({ runs: '5', socket: false, json: false });
});
