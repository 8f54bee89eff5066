import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { failed, intent } from '../../contracts/run-store/run-store-bench.ts';
import { LABEL } from '../workflows.ts';
import { Workshop } from '../workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

it('a commit whose receipts keep changing is given up, writes nothing, and is made by a later message', async () => {
  const message = await shop.begin(LABEL);
  const commit = shop.runs.commit.bind(shop.runs);
  let commits = 0;
  shop.runs.commit = async ({ run }) => {
    commits += 1;
    return { outcome: 'receipt_held', receipt: failed(intent(run), 'failed') };
  };
  await shop.work(message);
  expect(commits).toBe(60);
  expect(shop.outside.calls).toEqual([]);
  expect((await shop.now(message)).run).toMatchObject({ status: 'queued', seq: 1 });
  expect(shop.log.messages('warn')).toEqual(['the receipts of a commit changed faster than it could be made']);

  shop.runs.commit = commit;
  expect((await shop.finish(message)).run.status).toBe('succeeded');
});
