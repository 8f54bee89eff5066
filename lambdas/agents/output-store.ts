import type { OutboxEntry } from '../outbox/outbox.ts';
import type { CommandRef, OutputHead, StoredChunk } from './output.ts';

/** Output is in rows for this time, and longer in the object that is written when the command completes. */
export const OUTPUT_ROWS_STORED_MS = 7 * 24 * 60 * 60 * 1000;

/** The rows of output. */
export interface OutputStore {
  head(command: CommandRef): Promise<OutputHead | undefined>;
  /**
   * Stores chunks, then the head that counts them. A chunk that is already there stays as it is. False if the head was
   * changed since it was read; then the chunks do not count.
   */
  append(command: CommandRef, chunks: readonly StoredChunk[], head: OutputHead): Promise<boolean>;
  /** The chunks from one number up to another, exclusive, in order, about a megabyte at a time. */
  chunks(command: CommandRef, from: number, to: number): AsyncIterable<StoredChunk[]>;
  /** The last lease under which the step had output. */
  lastLease(step: Omit<CommandRef, 'leaseVersion'>): Promise<number | undefined>;
  /** Stores an entry that writes the object later. */
  enqueue(entry: OutboxEntry): Promise<void>;
}

/** The complete output of commands, one object for each. */
export interface OutputArchive {
  /** The first content of a key stays. */
  putOnce(key: string, content: Buffer): Promise<void>;
  /** Bytes from one position up to another, exclusive; fewer at the end. Undefined if there is no such object. */
  read(key: string, from: number, to: number): Promise<Buffer | undefined>;
}
