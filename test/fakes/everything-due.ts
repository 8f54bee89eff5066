import { DUE_SHARDS, type DueItem, type RunStore } from '../../lambdas/run/run-store.ts';

/** All pages of all shards. */
export async function everythingDue(store: Pick<RunStore, 'due'>, now: string, limit = 1_000): Promise<DueItem[]> {
  const due: DueItem[] = [];
  for (let shard = 0; shard < DUE_SHARDS; shard += 1) {
    let after: string | undefined;
    do {
      const page = await store.due(shard, now, { limit, ...(after !== undefined && { after }) });
      due.push(...page.items);
      after = page.next;
    } while (after !== undefined);
  }
  return due;
}
