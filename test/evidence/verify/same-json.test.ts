import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sameJson } from '../../../lambdas/evidence/verify/field-mismatch.ts';
import { canonicalJson } from '../../../lambdas/run/canonical-json.ts';

const SEED = 20_260_102;

/** Few names and values, so that many pairs are the same. */
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(null, true, 0, -0, 1, '', 'a'),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(
      fc.constantFrom('a', 'b', '0', '__proto__', 'constructor'),
      fc.oneof(tie('value'), fc.constant(undefined)),
      {
        maxKeys: 2,
        noNullPrototype: true,
      },
    ),
  ),
})).value;

it('values are the same if they have the same canonical form', () => {
  fc.assert(
    fc.property(values, values, (a, b) => {
      expect(sameJson(a, b)).toBe(canonicalJson(a) === canonicalJson(b));
      expect(sameJson(a, JSON.parse(JSON.stringify(a)))).toBe(true);
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});

it('what is missing differs from what is there', () => {
  expect(sameJson(undefined, {})).toBe(false);
  expect(sameJson({}, undefined)).toBe(false);
  expect(sameJson({ a: undefined }, {})).toBe(true);
  expect(sameJson({}, { constructor: 1 })).toBe(false);
  expect(sameJson([1], [1, 2])).toBe(false);
  expect(sameJson([], {})).toBe(false);
});
