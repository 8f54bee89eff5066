import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Clock } from '../entry/ports.ts';
import type { OutboxEntry } from '../outbox/outbox.ts';
import { ROW_IS_NEW, revisionIsStill } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, type Item, keyOf, outboxItem, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../run/dynamo/dynamo-rows.ts';
import type { CommandRef, OutputHead, StoredChunk } from './output.ts';
import { OUTPUT_ROWS_STORED_MS, type OutputStore } from './output-store.ts';

/**
 * Output has a partition for each run, apart from the rows of the run: who stores output cannot change the run, and who
 * reads the run does not read megabytes of output.
 */
export class DynamoOutputStore implements OutputStore {
  readonly #rows: DynamoRows;
  readonly #clock: Clock;

  constructor(client: DynamoDBClient, table: string, clock: Clock) {
    this.#rows = new DynamoRows(client, table);
    this.#clock = clock;
  }

  async head(command: CommandRef): Promise<OutputHead | undefined> {
    const item = await this.#rows.getItem(keys.outputHeadKey(command.tenant, command));
    return item && this.#isStored(item) ? docOf<OutputHead>(item) : undefined;
  }

  async append(command: CommandRef, chunks: readonly StoredChunk[], head: OutputHead): Promise<boolean> {
    // The rows come first, and count only when the head says so. A crash between them leaves rows that the same request,
    // sent again, finds in place.
    await Promise.all(
      chunks.map((chunk) =>
        this.#rows.save(this.#item(keys.outputChunkKey(command.tenant, command, chunk.seq), chunk), ROW_IS_NEW),
      ),
    );
    return this.#rows.save(
      this.#item(keys.outputHeadKey(command.tenant, command), head),
      revisionIsStill(head.revision - 1),
    );
  }

  async *chunks(command: CommandRef, from: number, to: number): AsyncGenerator<StoredChunk[]> {
    if (from >= to) return;
    const range = {
      pk: keys.outputPartition(command.tenant, command.runId),
      from: keys.outputChunkKey(command.tenant, command, from).sk,
      to: keys.outputChunkKey(command.tenant, command, to - 1).sk,
    };
    for await (const items of this.#rows.pages(range)) yield items.map((item) => docOf<StoredChunk>(item));
  }

  async lastLease(step: Omit<CommandRef, 'leaseVersion'>): Promise<number | undefined> {
    const [last] = await this.#rows.range(keys.outputsOfStep(step.tenant, step), { limit: 1, newestFirst: true });
    return last && this.#isStored(last) ? keys.leaseOfOutput(keyOf(last)) : undefined;
  }

  async enqueue(entry: OutboxEntry): Promise<void> {
    await this.#rows.save(outboxItem(entry), ROW_IS_NEW);
  }

  #item(key: keys.Key, doc: object): Item {
    return toItem(key, doc, { [keys.TTL_ATTRIBUTE]: Math.ceil((this.#clock.now() + OUTPUT_ROWS_STORED_MS) / 1000) });
  }

  #isStored(item: Item): boolean {
    return Number(item[keys.TTL_ATTRIBUTE]?.N) > this.#clock.now() / 1000;
  }
}
