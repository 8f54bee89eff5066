import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CountersignError } from '../../../lambdas/run/errors.ts';
import { LABEL } from '../workflows.ts';
import { Workshop } from '../workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

/** The n-th commit from now on does not fit, however often it is tried. */
function tooLargeFrom(nth: number, code: 'ROW_TOO_LARGE' | 'KEY_TOO_LONG' = 'ROW_TOO_LARGE'): void {
  let commits = 0;
  shop.disturb((name, run) => {
    if (name !== 'commit') return run();
    commits += 1;
    if (commits !== nth) return run();
    return Promise.reject(new CountersignError(code, 'a row would take 500 KB; at most 400 fit'));
  });
}

it.each(['ROW_TOO_LARGE', 'KEY_TOO_LONG'] as const)(
  'a run that meets %s ends and says so, instead of being tried for ever',
  async (code) => {
    const message = await shop.begin(LABEL);
    tooLargeFrom(1, code);
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ status: 'failed_terminal', error: { code } });
    expect(shop.outside.callsOf('POST github')).toEqual([]);
  },
);

it('a run whose write was made but is too large for a row needs a human', async () => {
  const message = await shop.begin(LABEL);
  tooLargeFrom(2);
  await shop.work(message);
  expect((await shop.now(message)).run).toMatchObject({ status: 'needs_human', error: { code: 'ROW_TOO_LARGE' } });
  expect(shop.outside.callsOf('POST github')).toHaveLength(1);
});
