import { afterAll, beforeAll, describe } from 'vitest';
import type { RunStore } from '../../../lambdas/run/run-store.ts';
import { RunStoreBench } from './run-store-bench.ts';
import { describeCapsAndLists } from './run-store-caps.ts';
import { describeCommits } from './run-store-commits.ts';
import { describeOutboxAndApprovals } from './run-store-outbox.ts';
import { describeReceiptsAndLeases } from './run-store-receipts.ts';
import { describeSizes } from './run-store-sizes.ts';

export function describeRunStoreContract(
  name: string,
  open: () => Promise<{ store: RunStore; close(): Promise<void> }>,
): void {
  describe(`${name} as a run store`, () => {
    let opened: Awaited<ReturnType<typeof open>>;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    const bench = new RunStoreBench(() => opened.store);

    describeCommits(bench);
    describeReceiptsAndLeases(bench);
    describeCapsAndLists(bench);
    describeOutboxAndApprovals(bench);
    describeSizes(bench);
  });
}
