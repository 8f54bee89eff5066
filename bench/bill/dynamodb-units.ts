/** Counts the units that DynamoDB would bill, from requests and responses, by the rules of its documentation. */
type Value = Record<string, unknown>;
type Item = Record<string, Value>;

interface Write {
  Item?: Item;
  Key?: Item;
  UpdateExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Item;
}

export interface Request extends Write {
  TransactItems?: Partial<Record<'Put' | 'Update' | 'Delete' | 'ConditionCheck', Write>>[];
  ConsistentRead?: boolean;
  IndexName?: string;
  RequestItems?: Record<string, { ConsistentRead?: boolean }>;
}

export interface Response {
  Item?: Item;
  Items?: Item[];
  Responses?: Record<string, Item[]>;
}

export interface Index {
  name: string;
  partition: string;
  sort: string;
}

export interface Units {
  writes: number;
  /** Writes of indexes: an entry that is new or gone counts once, one that moves twice. Transactions do not double them. */
  indexWrites: number;
  reads: number;
  /** What rows and index entries occupy after the runs. */
  storedBytes: number;
  /** Write units by kind of row: `RUN#…/STEP#…` is `RUN STEP`. */
  byRow: Record<string, number>;
  /** Write units of each index. */
  byIndex: Record<string, number>;
}

const WRITE_UNIT_BYTES = 1024;
const READ_UNIT_BYTES = 4096;
const BYTES_BESIDES_A_ROW = 100;

export class DynamoDbUnits {
  readonly #indexes: readonly Index[];
  readonly #rows = new Map<string, Item>();
  #units: Units = none();

  constructor(indexes: readonly Index[]) {
    this.#indexes = indexes;
  }

  /** Forgets the counts, and knows the rows that were written before. */
  reset(): void {
    this.#units = none();
  }

  report(): Units {
    return structuredClone(this.#units);
  }

  observe(operation: string, input: Request, response: Response): void {
    switch (operation) {
      case 'TransactWriteItems':
        for (const { Put, Update, Delete, ConditionCheck } of input.TransactItems ?? []) {
          const write = Put ?? Update ?? Delete ?? ConditionCheck;
          if (write)
            this.#write(write, { factor: 2, removes: Delete !== undefined, checks: ConditionCheck !== undefined });
        }
        return;
      case 'PutItem':
      case 'UpdateItem':
      case 'DeleteItem':
        this.#write(input, { factor: 1, removes: operation === 'DeleteItem', checks: false });
        return;
      case 'GetItem':
        this.#read([response.Item ?? {}], input.ConsistentRead === true);
        return;
      case 'Query':
        this.#readTogether(response.Items ?? [], input.ConsistentRead === true);
        return;
      case 'BatchGetItem':
        for (const [table, { ConsistentRead = false }] of Object.entries(input.RequestItems ?? {})) {
          this.#read(response.Responses?.[table] ?? [], ConsistentRead);
        }
        return;
      default:
        throw new Error(`the units of ${operation} are not known`);
    }
  }

  /** DynamoDB bills the larger one of the row before and the row after the write. */
  #write(write: Write, { factor, removes, checks }: { factor: number; removes: boolean; checks: boolean }): void {
    const key = write.Key ?? write.Item ?? {};
    const id = `${textOf(key.pk)} ${textOf(key.sk)}`;
    const before = this.#rows.get(id);
    const after = removes ? undefined : checks ? before : (write.Item ?? updated(before ?? key, write));
    const units = factor * roundedUp(Math.max(bytesOf(before), bytesOf(after)), WRITE_UNIT_BYTES);
    this.#units.writes += units;
    const kind = kindOf(key);
    this.#units.byRow[kind] = (this.#units.byRow[kind] ?? 0) + units;
    if (checks) return;
    for (const index of this.#indexes) this.#writeIndex(index, before, after);
    this.#units.storedBytes += storedBytes(after) - storedBytes(before);
    if (after) this.#rows.set(id, after);
    else this.#rows.delete(id);
  }

  #writeIndex({ name, partition, sort }: Index, before: Item | undefined, after: Item | undefined): void {
    const entry = (row: Item | undefined) =>
      row?.[partition] && row[sort]
        ? { pk: row.pk ?? {}, sk: row.sk ?? {}, [partition]: row[partition], [sort]: row[sort] }
        : undefined;
    const [old, now] = [entry(before), entry(after)];
    if (JSON.stringify(old) === JSON.stringify(now)) return;
    const units = [old, now].reduce((sum, each) => sum + (each ? roundedUp(bytesOf(each), WRITE_UNIT_BYTES) : 0), 0);
    this.#units.indexWrites += units;
    this.#units.byIndex[name] = (this.#units.byIndex[name] ?? 0) + units;
    this.#units.storedBytes += storedBytes(now) - storedBytes(old);
  }

  #read(items: Item[], consistent: boolean): void {
    for (const item of items) this.#readTogether([item], consistent);
  }

  #readTogether(items: Item[], consistent: boolean): void {
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
    this.#units.reads += roundedUp(bytes, READ_UNIT_BYTES) * (consistent ? 1 : 0.5);
  }
}

const none = (): Units => ({ writes: 0, indexWrites: 0, reads: 0, storedBytes: 0, byRow: {}, byIndex: {} });
const roundedUp = (bytes: number, unit: number) => Math.max(1, Math.ceil(bytes / unit));
const storedBytes = (item: Item | undefined) => (item ? bytesOf(item) + BYTES_BESIDES_A_ROW : 0);
const textOf = (value: Value | undefined): string => String(Object.values(value ?? {})[0] ?? '');

function bytesOf(item: Item | undefined): number {
  return Object.entries(item ?? {}).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value),
    0,
  );
}

/** In the wire format binary values are base64, in the SDK's they are bytes. A number has a byte for two digits, and one more. */
function valueBytes({ S, B, N }: Value): number {
  if (typeof S === 'string') return Buffer.byteLength(S);
  if (typeof B === 'string') return Buffer.from(B, 'base64').length;
  if (B instanceof Uint8Array) return B.length;
  if (typeof N === 'string') return Math.ceil(N.length / 2) + 1;
  return 1;
}

/** `SET #a = :a, …` and `ADD #n :n`, as lambdas/run/dynamo writes them. */
function updated(
  row: Item,
  { UpdateExpression = '', ExpressionAttributeNames = {}, ExpressionAttributeValues = {} }: Write,
) {
  const changed = { ...row };
  for (const [, name = '', value = ''] of UpdateExpression.matchAll(/(#?\w+) (?:= )?(:\w+)/g)) {
    changed[ExpressionAttributeNames[name] ?? name] = ExpressionAttributeValues[value] ?? {};
  }
  return changed;
}

/** The first words of the keys, without ids. */
function kindOf(key: Item): string {
  const word = (value: Value | undefined) => textOf(value).split('#')[0] ?? '';
  const [partition, sort] = [word(key.pk), word(key.sk)];
  return partition === 'RUN' && sort !== 'RUN' ? `RUN ${sort}` : partition;
}
