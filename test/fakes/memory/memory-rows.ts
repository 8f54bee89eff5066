import { itemBytes, toItem, tooLarge } from '../../../lambdas/run/dynamo/dynamo-items.ts';
import { TRANSACTION_MAX_BYTES } from '../../../lambdas/run/dynamo/dynamo-transactions.ts';

/** Rows of one kind, by partition and sort key. What goes in and out is a copy, so no caller shares state with the store. */
export class MemoryRows<T> {
  readonly #partitions = new Map<string, Map<string, T>>();

  get(partition: string, sort = ''): T | undefined {
    return copy(this.peek(partition, sort));
  }

  /** In the order of their sort keys. */
  inPartition(partition: string): T[] {
    return this.peekPartition(partition).map(copy);
  }

  all(): T[] {
    return [...this.peekAll()].map(copy);
  }

  /** The row itself, for readers that do not change it: copying would be most of a simulation's work. */
  peek(partition: string, sort = ''): T | undefined {
    return this.#partitions.get(partition)?.get(sort);
  }

  peekPartition(partition: string): T[] {
    const rows = [...(this.#partitions.get(partition) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
    return rows.map(([, row]) => row);
  }

  *peekAll(): Iterable<T> {
    for (const rows of this.#partitions.values()) yield* rows.values();
  }

  set(partition: string, sort: string, row: T | undefined): void {
    bytesOf(partition, sort, row);
    const rows = this.#partitions.get(partition) ?? new Map<string, T>();
    this.#partitions.set(partition, rows);
    if (row === undefined) rows.delete(sort);
    else rows.set(sort, copy(row));
  }
}

/** Documents are JSON: a copy has no undefined fields, as in DynamoDB. */
export function copy<T>(value: T): T {
  return value === undefined ? value : JSON.parse(JSON.stringify(value));
}

/** Rows up to this are counted as their text: compressing them all would be most of a simulation's work. */
const SMALL_LETTERS = 10_000;

/** The size of a row in DynamoDB. A row that is too large is refused as there. */
function bytesOf(partition: string, sort: string, row: unknown): number {
  if (row === undefined) return 0;
  const text = JSON.stringify(row);
  if (text.length <= SMALL_LETTERS) return Buffer.byteLength(text);
  return itemBytes(toItem({ pk: partition, sk: sort }, row as object));
}

/** A write with a condition on the current row; without a document it deletes the row. */
export interface RowWrite {
  row: string;
  bytes: number;
  refuses(): boolean;
  apply(): void;
}

export function write<T>(
  rows: MemoryRows<T>,
  [partition, sort = '']: readonly [partition: string, sort?: string],
  doc: T | undefined | ((current: T | undefined) => T),
  allowedIf: (current: T | undefined) => boolean = () => true,
): RowWrite & { rows: MemoryRows<T> } {
  return {
    rows,
    row: `${partition} ${sort}`,
    bytes: typeof doc === 'function' ? 0 : bytesOf(partition, sort, doc),
    refuses: () => !allowedIf(rows.peek(partition, sort)),
    apply: () => {
      const next = typeof doc === 'function' ? (doc as (now: T | undefined) => T)(rows.peek(partition, sort)) : doc;
      rows.set(partition, sort, next);
    },
  };
}

const TRANSACTION_ROWS_MAX = 100;

/** All writes or none, within one turn of the event loop. Returns which of them refused, in order, if any did. */
export function transact(writes: (RowWrite & { rows: unknown })[]): boolean[] | undefined {
  if (writes.length > TRANSACTION_ROWS_MAX) throw new Error(`a transaction of ${writes.length} rows`);
  for (const [index, { row, rows }] of writes.entries()) {
    const again = writes.findIndex((other) => other.row === row && other.rows === rows);
    // DynamoDB rejects such a transaction as malformed, independent of its conditions.
    if (again !== index) throw new Error(`a transaction with more than one write to ${row}`);
  }
  const bytes = writes.reduce((sum, each) => sum + each.bytes, 0);
  if (bytes > TRANSACTION_MAX_BYTES) throw tooLarge('the transaction', bytes, TRANSACTION_MAX_BYTES);
  const refusals = writes.map((each) => each.refuses());
  if (refusals.includes(true)) return refusals;
  for (const each of writes) each.apply();
  return undefined;
}
