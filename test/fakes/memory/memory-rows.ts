import { itemBytes, toItem, tooLarge } from '../../../lambdas/run/dynamo/dynamo-items.ts';
import { TRANSACTION_MAX_BYTES } from '../../../lambdas/run/dynamo/dynamo-transactions.ts';

interface Partition<T> {
  rows: Map<string, T>;
  /** In the order of their sort keys, until a row changes. */
  inOrder: readonly T[] | undefined;
}

/**
 * Rows of one kind, by partition and sort key. What goes in is copied and frozen, so no caller shares state with the store, and
 * what goes out needs no copy: copying would be most of a simulation's work. A reader that changes a row gets an error.
 */
export class MemoryRows<T> {
  readonly #partitions = new Map<string, Partition<T>>();
  #changes = 0;

  /** How often a row was written or deleted, for readers that keep what they derived from the rows. */
  get changes(): number {
    return this.#changes;
  }

  get(partition: string, sort = ''): T | undefined {
    return this.#partitions.get(partition)?.rows.get(sort);
  }

  /** In the order of their sort keys. */
  inPartition(partition: string): T[] {
    return [...this.peekPartition(partition)];
  }

  all(): T[] {
    return [...this.peekAll()];
  }

  /** As `get`, for readers outside of the system that is tested. */
  peek(partition: string, sort = ''): T | undefined {
    return this.get(partition, sort);
  }

  peekPartition(partition: string): readonly T[] {
    const found = this.#partitions.get(partition);
    if (!found) return [];
    found.inOrder ??= [...found.rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
    return found.inOrder;
  }

  *peekAll(): Iterable<T> {
    for (const { rows } of this.#partitions.values()) yield* rows.values();
  }

  set(partition: string, sort: string, row: T | undefined): void {
    this.put(partition, sort, asStored(partition, sort, row).row);
  }

  /** Only for a row that is a copy already. */
  put(partition: string, sort: string, row: T | undefined): void {
    const found = this.#partitions.get(partition) ?? { rows: new Map<string, T>(), inOrder: undefined };
    this.#partitions.set(partition, found);
    found.inOrder = undefined;
    this.#changes += 1;
    if (row === undefined) found.rows.delete(sort);
    else found.rows.set(sort, row);
  }
}

/** Documents are JSON: a copy has no undefined fields, as in DynamoDB. */
export function copy<T>(value: T): T {
  return value === undefined ? value : JSON.parse(JSON.stringify(value));
}

function frozen<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value;
  for (const each of Object.values(value)) frozen(each);
  return Object.freeze(value);
}

/** Rows up to this are counted as their text: compressing them all would be most of a simulation's work. */
const SMALL_LETTERS = 10_000;

/** The copy to store, and its size in DynamoDB. A row that is too large is refused as there. */
function asStored<T>(partition: string, sort: string, row: T | undefined): { row: T | undefined; bytes: number } {
  if (row === undefined) return { row, bytes: 0 };
  const text = JSON.stringify(row);
  const isSmall = text.length <= SMALL_LETTERS;
  const bytes = isSmall ? Buffer.byteLength(text) : itemBytes(toItem({ pk: partition, sk: sort }, row as object));
  return { row: frozen(JSON.parse(text)), bytes };
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
  const stored = typeof doc === 'function' ? undefined : asStored(partition, sort, doc);
  return {
    rows,
    row: `${partition} ${sort}`,
    bytes: stored?.bytes ?? 0,
    refuses: () => !allowedIf(rows.peek(partition, sort)),
    apply: () => {
      if (stored) rows.put(partition, sort, stored.row);
      else rows.set(partition, sort, (doc as (now: T | undefined) => T)(rows.peek(partition, sort)));
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
