import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, hashOf, sha256Hex } from '../../lambdas/run/canonical-json.ts';
import { anyCharacter } from '../fakes/any-character.ts';

const SEED = 20_260_102;

describe('canonical JSON', () => {
  it('gives the text of the example in RFC 8785', () => {
    const value = {
      // More digits than a double has: they must be gone from the text.
      numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    };
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('sorts keys by UTF-16 code units, as RFC 8785 shows', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    expect(Object.values(JSON.parse(canonicalJson(value)))).toHaveLength(7);
    expect([...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, name]) => name)).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it.each([
    [0, '0'],
    [-0, '0'],
    [1, '1'],
    [1e21, '1e+21'],
    [123456789012345680000, '123456789012345680000'],
    [5e-324, '5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [9007199254740992, '9007199254740992'],
    [0.1, '0.1'],
    [1e-7, '1e-7'],
  ])('writes the number %d as %s', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, undefined, () => {}])('has no form for %s', (value) => {
    expect(() => canonicalJson(value)).toThrow();
  });

  it('gives the text of the package `canonicalize`, or fails as it does, also for what is not plain JSON', () => {
    const ofPackage = (value: unknown) => textOrNone(() => canonicalize(value));
    fc.assert(
      fc.property(valuesWith(fc.double()), (value) => {
        expect(own(value)).toBe(ofPackage(value));
      }),
      { seed: SEED, numRuns: 3_000 },
    );
  });

  it('gives the text of the value after it was sent as JSON, if its numbers are finite', () => {
    const finite = valuesWith(fc.double({ noNaN: true, noDefaultInfinity: true }));
    fc.assert(
      fc.property(finite, (value) => {
        expect(own(value)).toBe(textOrNone(() => canonicalJson(JSON.parse(JSON.stringify(value)))));
      }),
      { seed: SEED, numRuns: 1_000 },
    );
  });

  it('gives the same text for the same value, in any order of keys', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(canonicalJson(reversed(value))).toBe(text);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });
});

it('hashes the canonical text with SHA-256', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(hashOf({ b: 1, a: 2 })).toBe(sha256Hex('{"a":2,"b":1}'));
});

const own = (value: unknown) => textOrNone(() => canonicalJson(value));

function textOrNone(textOf: () => string | undefined): string {
  try {
    return textOf() ?? 'none';
  } catch {
    return 'none';
  }
}

/** JSON values, and values that are not. */
function valuesWith(numbers: fc.Arbitrary<number>): fc.Arbitrary<unknown> {
  const keys = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.constantFrom(
      '1',
      '10',
      '9',
      '01',
      '__proto__',
      'toJSON',
      'constructor',
      '\ud800',
      '\\ud800',
      'é',
      'Z',
      'a',
      'aa',
    ),
  );
  const leaves = fc.oneof(
    fc.string({ unit: anyCharacter }),
    numbers,
    fc.integer(),
    fc.constantFrom<unknown>(null, true, undefined, '\ud800', '\\ud800', '\udfff', 1n, Symbol('x'), () => 1),
    fc
      .constantFrom<() => unknown>(
        () => new Date(0),
        () => new Date(Number.NaN),
        () => new Map([[1, 2]]),
        () => Object('boxed'),
        () => Object(7),
        () => ({ toJSON: () => ({ b: 1, a: 2 }) }),
        () => ({ toJSON: () => undefined }),
        () => Object.assign(Object.create(null), { b: 1, a: 2 }),
        () => new Uint8Array([1, 2]),
        // biome-ignore lint/suspicious/noSparseArray: it is tested
        () => [, 1],
        () => selfContaining(),
        () => nested(300),
      )
      .map((make) => make()),
  );
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      leaves,
      fc.array(tie('value')),
      fc.array(fc.tuple(keys, tie('value'))).map((entries) => withOwn(entries as [string, unknown][])),
    ),
  })).value;
}

/** With `__proto__` as a key like any other. */
function withOwn(entries: readonly [string, unknown][]): object {
  const object = {};
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

function selfContaining(): object {
  const object: Record<string, unknown> = { a: 1 };
  object.self = [object];
  return object;
}

const nested = (depth: number): unknown => (depth === 0 ? 'x' : { b: [nested(depth - 1)], a: 1 });

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversed(item)]),
  );
}
