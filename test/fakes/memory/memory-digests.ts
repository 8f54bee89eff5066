import type { DigestState, DigestStore } from '../../../lambdas/approval/digest/digest-store.ts';
import { nextRevision } from '../../../lambdas/notify/notice-store.ts';
import type { OutboxEntry } from '../../../lambdas/outbox/outbox.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { MemoryRows, transact, write } from './memory-rows.ts';

/** Digests without DynamoDB, in the same transactions as the outbox entries of the run store. */
export class MemoryDigests implements DigestStore {
  readonly #states = new MemoryRows<DigestState>();
  readonly #outbox: MemoryRows<OutboxEntry>;
  readonly #passage: Passage;

  constructor(outbox: MemoryRows<OutboxEntry>, passage: Passage = undisturbed) {
    this.#outbox = outbox;
    this.#passage = passage;
  }

  digests(tenant: string, channel: string): Promise<DigestState | undefined> {
    return this.#passage('digests', async () => this.#states.get(tenant, channel));
  }

  save(
    read: DigestState,
    changes: Partial<DigestState>,
    outbox?: { add: OutboxEntry; remove?: string },
  ): Promise<DigestState | undefined> {
    return this.#passage('saveDigests', async () => {
      const state = nextRevision(read, changes);
      const asRead = (now?: DigestState) => (now?.revision ?? 0) === read.revision;
      const refusals = transact([
        write(this.#states, [state.tenant, state.channel], state, asRead),
        ...(outbox ? [write(this.#outbox, [outbox.add.id], outbox.add)] : []),
        ...(outbox?.remove === undefined ? [] : [write(this.#outbox, [outbox.remove], undefined)]),
      ]);
      return refusals ? undefined : state;
    });
  }

  /** The state as it is now, for those who only look. */
  peek(tenant: string, channel: string): DigestState | undefined {
    return this.#states.peek(tenant, channel);
  }
}
