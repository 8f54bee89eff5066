import { describe, expect, it } from 'vitest';
import { assertShallow, JSON_DEPTH_MAX } from '../../lambdas/intake/json-depth.ts';

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe('the depth of a body', () => {
  it('may reach the limit, and not one more', () => {
    expect(() => assertShallow(nested(JSON_DEPTH_MAX))).not.toThrow();
    expect(() => assertShallow(nested(JSON_DEPTH_MAX + 1))).toThrow(/deeper than 64/);
  });

  it('counts objects and arrays alike', () => {
    expect(() => assertShallow('{"a":['.repeat(40))).toThrow(/deeper/);
  });

  it('does not count brackets in strings, whatever is escaped in them', () => {
    const brackets = '['.repeat(100);
    for (const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}`, `{${brackets}`]) {
      expect(() => assertShallow(JSON.stringify({ text }))).not.toThrow();
    }
    expect(() => assertShallow(`"a\\\\" ${brackets}`)).toThrow(/deeper/);
  });

  it('counts what is open, not how many there were', () => {
    expect(() => assertShallow(`[${'[],'.repeat(10_000)}0]`)).not.toThrow();
  });
});
