import { describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX, parseJson, tryParseJson } from '../../lambdas/entry/parse-json.ts';

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe('the depth of JSON text', () => {
  it('may reach the limit but not exceed it', () => {
    expect(() => parseJson(nested(JSON_DEPTH_MAX))).not.toThrow();
    expect(() => parseJson(nested(JSON_DEPTH_MAX + 1))).toThrow(/deeper than 64/);
  });

  it('counts objects and arrays, before the text is parsed', () => {
    expect(() => parseJson('{"a":['.repeat(40))).toThrow(/deeper/);
  });

  it('does not count brackets inside strings, with or without escapes', () => {
    const brackets = '['.repeat(100);
    for (const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}`, `{${brackets}`]) {
      expect(parseJson(JSON.stringify({ text }))).toEqual({ text });
    }
    expect(() => parseJson(`"a\\\\" ${brackets}`)).toThrow(/deeper/);
  });

  it('counts open brackets only', () => {
    expect(() => parseJson(`[${'[],'.repeat(10_000)}0]`)).not.toThrow();
  });
});

describe('parsed JSON', () => {
  it('can be canonicalized: lone surrogates are replaced, and numbers beyond a double are refused', () => {
    expect(parseJson('{"a\\ud800":["\\udc00"]}')).toEqual({ 'a\ufffd': ['\ufffd'] });
    expect(() => parseJson('[1e999]')).toThrow(/beyond the range of a double/);
  });

  it('is refused without quoting the text', () => {
    expect(() => parseJson('CANARY')).toThrow(/^is not JSON, or contains/);
    expect(tryParseJson('CANARY')).toBeUndefined();
  });
});
