import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { Slot } from '../run.ts';
import type { CapWrite } from '../settings/caps.ts';
import { type Item, toItem } from './dynamo-items.ts';
import * as keys from './dynamo-keys.ts';
import { add, type Condition, put, remove } from './dynamo-transactions.ts';

/** The attribute with the number of running runs of a workspace, beside the total. */
const WORKSPACE_COUNTER = 'workspace:';

const hasFreeSlot = (counter: '#running' | '#starts', max: number): Condition => ({
  expression: `attribute_not_exists(${counter}) OR ${counter} < :max`,
  values: { ':max': max },
});
/** A past minute is not read again. An hour covers clock skew. */
const STARTS_RETENTION_SECONDS = 60 * 60;
const startsExpireAt = (minute: string) => Date.parse(`${minute}:00.000Z`) / 1000 + STARTS_RETENTION_SECONDS;

const holderIs = (runId: string): Condition => ({
  expression: 'attribute_not_exists(#pk) OR #holder = :runId',
  values: { ':runId': runId },
});

/** The transaction item for a slot, a start or a key. */
export function capWrite(table: string, tenant: string, write: CapWrite): TransactWriteItem {
  switch (write.kind) {
    case 'take_slot':
      return add(table, keys.slotCounterKey(tenant, write.slot.shard, write.slot.workflow), slotCount(write.slot, 1), {
        condition: hasFreeSlot('#running', write.max),
      });
    case 'return_slot':
      return add(table, keys.slotCounterKey(tenant, write.slot.shard, write.slot.workflow), slotCount(write.slot, -1));
    case 'count_start':
      return add(
        table,
        keys.startCounterKey(tenant, write.minute, write.workflow),
        { starts: 1 },
        { condition: hasFreeSlot('#starts', write.max), deleteAfterSeconds: startsExpireAt(write.minute) },
      );
    case 'take_key':
      return put(
        table,
        toItem(keys.concurrencyLockKey(tenant, write.key), { holder: write.runId }),
        holderIs(write.runId),
      );
    case 'release_key':
      return remove(table, keys.concurrencyLockKey(tenant, write.key), holderIs(write.runId));
  }
}

const slotCount = ({ workspace }: Slot, by: 1 | -1) => ({ running: by, [`${WORKSPACE_COUNTER}${workspace}`]: by });

/** Adds the counters of all shards by workspace. */
export function runningByWorkspace(counters: Item[]): Record<string, number> {
  const running: Record<string, number> = {};
  for (const [name, value] of counters.flatMap((counter) => Object.entries(unmarshall(counter)))) {
    if (!name.startsWith(WORKSPACE_COUNTER)) continue;
    const workspace = name.slice(WORKSPACE_COUNTER.length);
    running[workspace] = (running[workspace] ?? 0) + value;
  }
  return running;
}
