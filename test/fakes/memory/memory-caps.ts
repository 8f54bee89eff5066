import type { Slot } from '../../../lambdas/run/run.ts';
import type { CapWrite } from '../../../lambdas/run/settings/caps.ts';
import { MemoryRows, type RowWrite, write } from './memory-rows.ts';

/** The counter of a shard: the number of running runs, in total and by workspace. */
export interface SlotCounter {
  tenant: string;
  shard: number;
  workflow?: string;
  running: number;
  workspaces: Record<string, number>;
}

/** Counters of slots and concurrency keys, with the same conditions as in DynamoDB. */
export class MemoryCaps {
  readonly #slots = new MemoryRows<SlotCounter>();
  readonly #starts = new MemoryRows<{ starts: number }>();
  readonly #locks = new MemoryRows<{ holder: string }>();

  write(tenant: string, cap: CapWrite): RowWrite & { rows: unknown } {
    switch (cap.kind) {
      case 'take_slot':
        return this.#count(tenant, cap.slot, 1, (now) => now === undefined || now.running < cap.max);
      case 'return_slot':
        return this.#count(tenant, cap.slot, -1);
      case 'count_start':
        return write(
          this.#starts,
          [tenant, `${cap.minute} ${cap.workflow ?? ''}`],
          (now) => ({ starts: (now?.starts ?? 0) + 1 }),
          (now) => now === undefined || now.starts < cap.max,
        );
      case 'take_key':
        return write(this.#locks, [tenant, cap.key], { holder: cap.runId }, isFreeOrHeldBy(cap.runId));
      case 'release_key':
        return write(this.#locks, [tenant, cap.key], undefined, isFreeOrHeldBy(cap.runId));
    }
  }

  /** The running runs of each workspace, from the counters of the first `shards` shards. */
  running(tenant: string, shards: number): Record<string, number> {
    const running: Record<string, number> = {};
    for (const counter of this.#slots.peekPartition(tenant)) {
      if (counter.shard >= shards || counter.workflow !== undefined) continue;
      for (const [workspace, count] of Object.entries(counter.workspaces)) {
        running[workspace] = (running[workspace] ?? 0) + count;
      }
    }
    return running;
  }

  counters(): Iterable<SlotCounter> {
    return this.#slots.peekAll();
  }

  holder(tenant: string, key: string): string | undefined {
    return this.#locks.peek(tenant, key)?.holder;
  }

  holders(): string[] {
    return [...this.#locks.peekAll()].map(({ holder }) => holder);
  }

  #count(
    tenant: string,
    { shard, workspace, workflow }: Slot,
    by: 1 | -1,
    allowedIf?: (now: SlotCounter | undefined) => boolean,
  ) {
    const counted = (now: SlotCounter = { tenant, shard, workflow, running: 0, workspaces: {} }): SlotCounter => ({
      ...now,
      running: now.running + by,
      workspaces: { ...now.workspaces, [workspace]: (now.workspaces[workspace] ?? 0) + by },
    });
    return write(this.#slots, [tenant, `${shard} ${workflow ?? ''}`], counted, allowedIf);
  }
}

const isFreeOrHeldBy = (runId: string) => (now: { holder: string } | undefined) =>
  now === undefined || now.holder === runId;
