import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { writeKey } from '../../lambdas/connectors/connector.ts';
import { toItem } from '../../lambdas/run/dynamo/dynamo-items.ts';
import * as keys from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';

/** Every function that makes keys; shards and due times do not contain text of people. */
const MAKERS = Object.entries(keys).flatMap(([name, make]) =>
  typeof make === 'function' && /(Key|Partition)$/.test(name) && !/^(parse|version|is|assert|due)/.test(name)
    ? [[name, make as (...parts: never[]) => keys.Key | string] as const]
    : [],
);
const text = fc.oneof(
  fc.string({ maxLength: 30, unit: 'grapheme' }),
  fc.integer({ min: 900, max: 5_000 }).map((length) => 'a'.repeat(length)),
  fc.integer({ min: 400, max: 1_500 }).map((length) => '😀'.repeat(length)),
);
const bytes = (value: string) => Buffer.byteLength(value);

describe('a key made of anything', () => {
  it.each(MAKERS)('%s is one that DynamoDB takes, or KEY_TOO_LONG', (_name, make) => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        try {
          const made = make(one as never, other as never, '7' as never);
          if (typeof made === 'string') {
            expect(bytes(made)).toBeLessThanOrEqual(2_048);
            return;
          }
          const item = toItem(made, {});
          expect(bytes(item.pk?.S ?? '')).toBeLessThanOrEqual(2_048);
          expect(bytes(item.sk?.S ?? '')).toBeLessThanOrEqual(1_024);
        } catch (error) {
          expect(error).toBeInstanceOf(CountersignError);
          expect(error).toMatchObject({ code: 'KEY_TOO_LONG' });
        }
      }),
    );
  });

  it('is made of every kind of row', () => {
    expect(MAKERS.length).toBeGreaterThan(25);
  });
});

describe('the key of a write', () => {
  it('names its target as it is, up to a length, and beyond it by its hash', () => {
    expect(writeKey(['slack', 'post', '#incidents'], 1)).toMatch(/^slack:post:#incidents:[0-9a-f]{64}$/);
    fc.assert(
      fc.property(text, text, (one, other) => {
        const key = writeKey(['http', one, other], { a: 1 });
        expect(
          bytes(keys.receiptKey('a-tenant-of-twenty-00', `${key}:run_${'0'.repeat(40)}:${'s'.repeat(63)}`).pk),
        ).toBeLessThanOrEqual(2_048);
        if (one !== other) expect(writeKey(['http', other, one], { a: 1 })).not.toBe(key);
      }),
    );
  });
});
