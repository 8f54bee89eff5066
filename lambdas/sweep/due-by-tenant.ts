import type { Log } from '../entry/ports.ts';
import { DUE_SHARDS, type DueItem, type RunStore } from '../run/run-store.ts';

/** A page of DynamoDB has 1 MB: about this many entries of the index. */
const DUE_PAGE_MAX = 5_000;
/**
 * Further items wait for the next sweep. All shards together: 20,000 messages a minute per tenant, which is more than one
 * sweep can send, and few enough that 20 tenants fit into its memory.
 */
const DUE_PER_TENANT_AND_SHARD_MAX = 1_250;

export interface DueReader {
  runs: Pick<RunStore, 'due'>;
  /** False if the remaining time of this invocation is needed to send what was found. */
  hasTimeToRead(): boolean;
  log: Log;
}

/**
 * All due items by tenant, those due longest first. Reads all pages before anything is sent: 5,000 entries are one
 * request, and fair turns need the items of all tenants.
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
      reader.log.error('a shard of the due index could not be read', { error: read.reason });
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

/** One item of every tenant, then the next of every tenant, so that a tenant with few items does not wait for the others. */
export function* inTurns(byTenant: ReadonlyMap<string, readonly DueItem[]>): Generator<DueItem> {
  for (let left = [...byTenant.values()], turn = 0; left.length > 0; turn += 1) {
    left = left.filter((items) => turn < items.length);
    for (const items of left) yield items[turn] as DueItem;
  }
}
