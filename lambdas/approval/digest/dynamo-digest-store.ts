import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemPause } from '../../entry/system.ts';
import { nextRevision } from '../../notify/notice-store.ts';
import type { OutboxEntry } from '../../outbox/outbox.ts';
import { revisionIsStill } from '../../run/dynamo/dynamo-conditions.ts';
import { outboxItem, toItem } from '../../run/dynamo/dynamo-items.ts';
import * as keys from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../../run/dynamo/dynamo-transactions.ts';
import type { DigestState, DigestStore } from './digest-store.ts';

export class DynamoDigestStore implements DigestStore {
  readonly #rows: DynamoRows;
  readonly #pause: Pause;

  constructor(client: DynamoDBClient, table: string, pause: Pause = systemPause) {
    this.#rows = new DynamoRows(client, table);
    this.#pause = pause;
  }

  digests(tenant: string, channel: string): Promise<DigestState | undefined> {
    return this.#rows.get(keys.digestKey(tenant, channel));
  }

  async save(
    read: DigestState,
    changes: Partial<DigestState>,
    outbox?: { add: OutboxEntry; remove?: string },
  ): Promise<DigestState | undefined> {
    const state = nextRevision(read, changes);
    const item = toItem(keys.digestKey(state.tenant, state.channel), state);
    const asRead = revisionIsStill(read.revision);
    if (!outbox) return (await this.#rows.save(item, asRead)) ? state : undefined;
    const { add, remove } = outbox;
    const refusals = await this.#rows.transact(
      [
        this.#rows.put(item, asRead),
        this.#rows.put(outboxItem(add)),
        ...(remove === undefined ? [] : [this.#rows.remove(keys.outboxKey(remove))]),
      ],
      this.#pause,
    );
    return refusals ? undefined : state;
  }
}
