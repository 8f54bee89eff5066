import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** The bundles that the synthesis for this test run created. */
const BUNDLES = join(import.meta.dirname, '..', '..', '.build', 'functions');
const has = (entry: string, file: string) => existsSync(join(BUNDLES, entry, file));

describe('the policy engines', () => {
  it.each(['worker/step', 'api/policies/policies'])('are complete in the bundle of %s', (entry) => {
    const load = createRequire(join(BUNDLES, entry, 'index.mjs'));
    // Other test files in this process may have loaded the engines of the repository.
    const loadedBefore = new Set(Object.keys(load.cache));
    expect(load('@cedar-policy/cedar-wasm/nodejs').getCedarLangVersion()).toMatch(/^4\./);
    expect(load('@open-policy-agent/opa-wasm').loadPolicy).toBeTypeOf('function');
    const loaded = Object.keys(load.cache).filter(
      (path) => !loadedBefore.has(path) && /cedar-wasm|opa-wasm|sprintf-js/.test(path),
    );
    expect(loaded.some((path) => path.includes('sprintf-js'))).toBe(true);
    expect(loaded.filter((path) => !path.startsWith(BUNDLES))).toEqual([]);
    expect(has(entry, 'policies/default.cedar') && has(entry, 'policies/schema.cedarschema')).toBe(true);
  });

  it.each(['intake/github', 'api/runs/runs', 'api/runs/control', 'evidence/bundle/seal', 'sweep/sweep'])(
    'are not in %s',
    (entry) => {
      expect(has(entry, 'index.mjs')).toBe(true);
      expect(has(entry, 'node_modules/@cedar-policy/cedar-wasm/nodejs/cedar_wasm_bg.wasm')).toBe(false);
      expect(has(entry, 'node_modules/@open-policy-agent/opa-wasm/src/opa.js')).toBe(false);
      // The sealer stores the texts of policies, and evaluates none.
      expect(has(entry, 'policies/default.cedar')).toBe(entry === 'evidence/bundle/seal');
    },
  );
});
