import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClaimFailed, Narrator } from '../../local/demo/narrator.ts';
import { plainEnvironment, Running } from './command-line.ts';

const CHAPTERS = [
  'The system starts',
  'A plan before the first run',
  'A low-risk write needs no approval',
  'A write with more risk needs a second person',
  'A rejected write is not made',
  'Another person approves an edit',
  'An AI agent proposes; policy and people decide',
  'A worker is killed during a write',
  'A failed run is rolled back',
  'All writes are stopped, and continue',
  'Anyone can verify the evidence',
  'A policy change is replayed on past decisions',
  'A tenant sees only its own runs',
];

describe('npm run demo', () => {
  /** A folder for the temporary files of the demo, to check that it leaves none. */
  let temporary: string;
  beforeEach(() => {
    temporary = mkdtempSync(join(tmpdir(), 'countersign-demo-test-'));
  });
  afterEach(() => rmSync(temporary, { recursive: true, force: true }));

  const demo = (environment: NodeJS.ProcessEnv = {}) =>
    new Running(process.execPath, ['local/demo.ts'], plainEnvironment({ TMPDIR: temporary, ...environment }));

  test('shows all acts, checks each claim, and leaves nothing on disk', async () => {
    const { exitCode, stdout, stderr } = await demo().ended;
    expect(exitCode, stdout + stderr).toBe(0);
    expect([...stdout.matchAll(/^\d+ {2}(.*)$/gm)].map(([, title]) => title)).toEqual(CHAPTERS);
    expect(stdout).toContain('✓ every write was made once, including the work note');
    const claims = stdout.match(/^ {3}✓ /gm)?.length;
    expect(stdout).toContain(`${claims} claims checked in `);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('exits with 1 and cleans up if the system cannot start', async () => {
    const { exitCode } = await demo({ AWS_ENDPOINT_URL_DYNAMODB: 'not an address' }).ended;
    expect(exitCode).toBe(1);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('cleans up when it is ended in the middle', async () => {
    const running = demo();
    await running.hasPrinted('✓ the system is ready at');
    running.signal('SIGTERM');
    expect((await running.ended).exitCode).toBe(130);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

test('a claim that is not so ends the story with what was expected and seen', () => {
  const narrator = new Narrator();
  const claim = () => narrator.claim('one note', 2, 1);
  expect(claim).toThrow(ClaimFailed);
  expect(claim).toThrow(expect.objectContaining({ message: 'one note', expected: 1, seen: 2 }));
  expect(narrator.claimsHeld).toBe(0);
});
