import type { Log } from '../entry/ports.ts';
import { DUE_SHARDS, type DueItem, type RunStore } from '../run/run-store.ts';

/** One answer of DynamoDB has 1 MB: about this many entries of the index. */
const DUE_PAGE_MAX = 5_000;
/**
 * What one tenant has due in one shard beyond this waits for the next sweep. All shards together: 20,000 messages a minute
 * for each tenant, which is more than one sweep can send, and little enough that 20 tenants fit into its memory.
 */
export const DUE_PER_TENANT_AND_SHARD_MAX = 1_250;

export interface DueReader {
  runs: Pick<RunStore, 'due'>;
  /** False when what is left of this invocation is needed to send what was found. */
  hasTimeToRead(): boolean;
  log: Log;
}

/**
 * Everything that is due, by tenant, each tenant's longest due first. All pages are read before anything is sent: reading
 * 5,000 entries is one request, and only whoever has seen them all can give every tenant its share.
 */
export async function dueByTenant(
  reader: DueReader,
  now: string,
): Promise<{ byTenant: Map<string, DueItem[]>; unreadShards: number }> {
  const all = new Map<string, DueItem[]>();
  let unreadShards = 0;
  const reads = Array.from({ length: DUE_SHARDS }, (_, shard) => dueInShard(reader, shard, now));
  for (const read of await Promise.allSettled(reads)) {
    if (read.status === 'rejected') {
      unreadShards += 1;
      reader.log.error('what is due could not be read', { error: read.reason });
    } else for (const [tenant, items] of read.value) all.set(tenant, (all.get(tenant) ?? []).concat(items));
  }
  for (const items of all.values()) items.sort((a, b) => (a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : 0));
  return { byTenant: all, unreadShards };
}

async function dueInShard({ runs, hasTimeToRead }: DueReader, shard: number, now: string) {
  const byTenant = new Map<string, DueItem[]>();
  let after: string | undefined;
  do {
    const { items, next } = await runs.due(shard, now, { limit: DUE_PAGE_MAX, ...(after !== undefined && { after }) });
    for (const item of items) {
      const ofTenant = byTenant.get(item.tenant) ?? [];
      if (ofTenant.length < DUE_PER_TENANT_AND_SHARD_MAX) ofTenant.push(item);
      byTenant.set(item.tenant, ofTenant);
    }
    after = next;
  } while (after !== undefined && hasTimeToRead());
  return byTenant;
}

/** One item of every tenant, then the next of every tenant: whoever has few due is done before the others' second hundred. */
export function* inTurns(byTenant: ReadonlyMap<string, readonly DueItem[]>): Generator<DueItem> {
  for (let left = [...byTenant.values()], turn = 0; left.length > 0; turn += 1) {
    left = left.filter((items) => turn < items.length);
    for (const items of left) yield items[turn] as DueItem;
  }
}
