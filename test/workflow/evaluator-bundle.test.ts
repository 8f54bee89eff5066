import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Where all functions were bundled when the stages were synthesized for this test run. */
const BUNDLES = join(import.meta.dirname, '..', '..', '.build', 'functions');
const program = (entry: string) => join(BUNDLES, entry, 'evaluator.mjs');

describe('the evaluation program', () => {
  it.each(['worker/step', 'intake/github', 'intake/servicenow', 'api/definitions/plan'])(
    'lies beside %s, and evaluates without anything else',
    async (entry) => {
      const child = fork(program(entry), { env: {}, execArgv: [] });
      const said = () => new Promise((resolve) => child.once('message', resolve));
      expect(await said()).toEqual({ ready: true });
      child.send({ sources: ['$sum([1..4])'], context: '{}', nowMs: 0, resultsMaxBytes: 1_000 });
      expect(await said()).toEqual({ values: [10] });
      child.kill();
    },
  );

  it.each(['api/runs/runs', 'evidence/bundle/seal', 'api/authorizer/authorizer'])('is not in %s', (entry) => {
    expect(existsSync(join(BUNDLES, entry, 'index.mjs'))).toBe(true);
    expect(existsSync(program(entry))).toBe(false);
  });
});
