import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openCursor, sealCursor } from '../../lambdas/api/paging.ts';

const SEED = 20_260_102;
const position = '2026-01-02T03:04:05.000Z run_00000001';
const cursor = sealCursor(position, 'acme/all', 'secret');
const refused = expect.objectContaining({ status: 400, code: 'BAD_CURSOR' });

describe('a cursor', () => {
  it('opens for the list that it was made for', () => {
    expect(openCursor(cursor, 'acme/all', 'secret')).toBe(position);
  });

  it.each([
    ['another tenant', cursor, 'globex/all', 'secret'],
    ['another list of the same tenant', cursor, 'acme/queued', 'secret'],
    ['another secret', cursor, 'acme/all', 'secret2'],
    ['a position that was changed', cursor.replace(/^../, 'AA'), 'acme/all', 'secret'],
    ['no signature', cursor.split('.')[0] ?? '', 'acme/all', 'secret'],
    ['an empty signature', `${cursor.split('.')[0]}.`, 'acme/all', 'secret'],
    ['the position in plain text', position, 'acme/all', 'secret'],
    ['nothing', '', 'acme/all', 'secret'],
  ])('with %s is refused', (_what, given, list, secret) => {
    expect(() => openCursor(given, list, secret)).toThrow(refused);
  });

  it('cannot be invented', () => {
    fc.assert(
      fc.property(fc.string(), (made) => {
        fc.pre(made !== cursor);
        expect(() => openCursor(made, 'acme/all', 'secret')).toThrow(refused);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });
});
