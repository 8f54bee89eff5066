import { dirname, join } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { inTransaction, openDatabase } from '../cloud/durable-file.ts';
import type { Item } from './attribute-values.ts';

/** Names of the key attributes. `projected`: the attributes that queries return; absent: all. */
export interface KeySchema {
  partition: string;
  /** Undefined if the table or index has no sort key. */
  sort: string | undefined;
  projected?: string[];
}

export interface TableDefinition extends KeySchema {
  name: string;
  indexes: Record<string, KeySchema>;
}

export interface Stored {
  item: Item;
  bytes: number;
}

export interface Range {
  index: string | undefined;
  partition: string;
  /** SQL conditions on the sort key, each with its value: `>= ?`. */
  sort: readonly { sql: string; value: string }[];
  forward: boolean;
  /** The keys of the row after which the range begins. */
  after: Item | undefined;
}

const SCHEMA = 'CREATE TABLE IF NOT EXISTS definitions (name TEXT PRIMARY KEY, definition TEXT NOT NULL)';
const NO_SORT_KEY = '';

/**
 * The items of tables in one SQLite file. An item is a row with its JSON, its keys and the keys of its indexes as columns, so
 * SQLite itself maintains the indexes. Keys are texts; SQLite orders them by their bytes, as DynamoDB does.
 */
export class ItemStore {
  readonly #database: DatabaseSync;
  readonly #tables = new Map<string, StoredTable>();

  /** Throws if another process has the file. The lock ends with the process, however that ends. */
  constructor(dataFolder: string) {
    this.#database = openExclusively(dataFolder);
    for (const { definition } of this.#database.prepare('SELECT definition FROM definitions').all()) {
      const stored = JSON.parse(String(definition)) as TableDefinition;
      this.#tables.set(stored.name, new StoredTable(this.#database, stored));
    }
  }

  definition(name: string): TableDefinition | undefined {
    return this.#tables.get(name)?.definition;
  }

  create(definition: TableDefinition): void {
    const keys = 'pk TEXT NOT NULL, sk TEXT NOT NULL, item TEXT NOT NULL, bytes INTEGER NOT NULL, UNIQUE (pk, sk)';
    this.transaction(() => {
      this.#database.exec(`CREATE TABLE ${quoted(definition.name)} (id INTEGER PRIMARY KEY, ${keys})`);
      for (const index of Object.keys(definition.indexes)) this.#createIndex(definition.name, index);
      this.#save(definition);
    });
  }

  /** Adds an index with the items that the table has. */
  addIndex(name: string, index: string, schema: KeySchema): void {
    const before = this.definition(name);
    if (!before) throw new Error(`there is no table ${name}`);
    this.transaction(() => {
      this.#createIndex(name, index);
      this.#save({ ...before, indexes: { ...before.indexes, [index]: schema } });
      const rows = this.#database.prepare(`SELECT item, bytes FROM ${quoted(name)}`).all();
      for (const { item, bytes } of rows) this.table(name)?.put(JSON.parse(String(item)), Number(bytes));
    });
  }

  table(name: string): StoredTable | undefined {
    return this.#tables.get(name);
  }

  transaction<T>(run: () => T): T {
    return inTransaction(this.#database, run);
  }

  close(): void {
    this.#database.close();
  }

  #createIndex(table: string, index: string): void {
    const columns = indexColumns(index);
    for (const column of columns) this.#database.exec(`ALTER TABLE ${quoted(table)} ADD COLUMN ${column} TEXT`);
    this.#database.exec(
      `CREATE INDEX ${quoted(`${table}.${index}`)} ON ${quoted(table)} (${columns.join(', ')}, pk, sk) WHERE ${columns[0]} IS NOT NULL`,
    );
  }

  #save(definition: TableDefinition): void {
    this.#database
      .prepare('INSERT OR REPLACE INTO definitions (name, definition) VALUES (?, ?)')
      .run(definition.name, JSON.stringify(definition));
    this.#tables.set(definition.name, new StoredTable(this.#database, definition));
  }
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const indexColumns = (index: string) => [quoted(`${index}:pk`), quoted(`${index}:sk`)] as const;

class StoredTable {
  readonly definition: TableDefinition;
  readonly #database: DatabaseSync;
  readonly #indexes: [string, KeySchema][];
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #queries = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, definition: TableDefinition) {
    this.definition = definition;
    this.#database = database;
    this.#indexes = Object.entries(definition.indexes);
    const table = quoted(definition.name);
    const columns = ['pk', 'sk', 'item', 'bytes', ...this.#indexes.flatMap(([index]) => indexColumns(index))];
    const changed = columns.slice(2).map((column) => `${column} = excluded.${column}`);
    this.#get = database.prepare(`SELECT item, bytes FROM ${table} WHERE pk = ? AND sk = ?`);
    this.#put = database.prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT (pk, sk) DO UPDATE SET ${changed.join(', ')}`,
    );
    this.#delete = database.prepare(`DELETE FROM ${table} WHERE pk = ? AND sk = ?`);
  }

  get(key: Item): Stored | undefined {
    const row = this.#get.get(...this.#keyOf(key));
    return row && { item: JSON.parse(String(row.item)), bytes: Number(row.bytes) };
  }

  put(item: Item, bytes: number): void {
    const indexed = this.#indexes.flatMap(([, schema]) => {
      const [partition, sort] = [textOf(item, schema.partition), textOf(item, schema.sort)];
      return partition === undefined || sort === undefined ? [null, null] : [partition, sort];
    });
    this.#put.run(...this.#keyOf(item), JSON.stringify(item), bytes, ...indexed);
  }

  delete(key: Item): void {
    this.#delete.run(...this.#keyOf(key));
  }

  /** All items, in the order of their keys. */
  *scan(after: Item | undefined): Generator<Item> {
    const sql = `SELECT item FROM ${quoted(this.definition.name)} WHERE (pk, sk) > (?, ?) ORDER BY pk, sk`;
    const from = after ? this.#keyOf(after) : ['', ''];
    for (const { item } of this.#prepared(sql).iterate(...from)) yield JSON.parse(String(item));
  }

  /** In order. An index without further attributes is read without reading the items. */
  *query(range: Range): Generator<Item> {
    const schema = range.index === undefined ? this.definition : this.definition.indexes[range.index];
    if (!schema) throw new Error(`there is no index ${range.index}`);
    const [pk, sk] = range.index === undefined ? (['pk', 'sk'] as const) : indexColumns(range.index);
    const order = range.index === undefined ? [sk] : [sk, 'pk', 'sk'];
    const after = range.after && [
      ...(range.index === undefined ? [] : [textOf(range.after, schema.sort) ?? NO_SORT_KEY]),
      ...(range.index === undefined ? [this.#keyOf(range.after)[1]] : this.#keyOf(range.after)),
    ];
    const conditions = [
      `${pk} = ?`,
      ...range.sort.map(({ sql }) => `${sk} ${sql}`),
      ...(after ? [`(${order.join(', ')}) ${range.forward ? '>' : '<'} (${order.map(() => '?').join(', ')})`] : []),
    ];
    const keysOnly = isKeysOnly(schema, this.definition);
    const selected = keysOnly ? `pk, sk, ${pk} AS ipk, ${sk} AS isk` : 'item';
    const sorted = order.map((column) => `${column} ${range.forward ? 'ASC' : 'DESC'}`).join(', ');
    const statement = this.#prepared(
      `SELECT ${selected} FROM ${quoted(this.definition.name)} WHERE ${conditions.join(' AND ')} ORDER BY ${sorted}`,
    );
    const values = [range.partition, ...range.sort.map(({ value }) => value), ...(after ?? [])];
    for (const row of statement.iterate(...values)) {
      yield keysOnly ? this.#keysIn(row, schema) : this.#projected(JSON.parse(String(row.item)), schema);
    }
  }

  #prepared(sql: string): StatementSync {
    const known = this.#queries.get(sql);
    if (known) return known;
    const statement = this.#database.prepare(sql);
    this.#queries.set(sql, statement);
    return statement;
  }

  #keyOf(item: Item): [string, string] {
    const { partition, sort } = this.definition;
    return [textOf(item, partition) ?? '', textOf(item, sort) ?? NO_SORT_KEY];
  }

  #projected(item: Item, { partition, sort, projected }: KeySchema): Item {
    if (!projected) return item;
    const names = new Set([this.definition.partition, this.definition.sort, partition, sort, ...projected]);
    return Object.fromEntries(Object.entries(item).filter(([name]) => names.has(name)));
  }

  #keysIn(row: Record<string, unknown>, schema: KeySchema): Item {
    const attributes: [string | undefined, unknown][] = [
      [this.definition.partition, row.pk],
      [this.definition.sort, row.sk],
      [schema.partition, row.ipk],
      [schema.sort, row.isk],
    ];
    return Object.fromEntries(attributes.flatMap(([name, S]) => (name === undefined ? [] : [[name, { S }]])));
  }
}

function textOf(item: Item, name: string | undefined): string | undefined {
  if (name === undefined) return NO_SORT_KEY;
  const S = item[name]?.S;
  return typeof S === 'string' ? S : undefined;
}

function isKeysOnly({ projected }: KeySchema, table: TableDefinition): boolean {
  return projected?.every((name) => name === table.partition || name === table.sort) ?? false;
}

function openExclusively(dataFolder: string): DatabaseSync {
  const path = join(dataFolder, 'dynamodb.sqlite');
  let database: DatabaseSync | undefined;
  try {
    database = openDatabase(dataFolder, 'dynamodb', '');
    database.exec(`PRAGMA locking_mode = EXCLUSIVE; ${SCHEMA}`);
    const [other] = database.prepare("SELECT name FROM sqlite_master WHERE name = '_tables'").all();
    if (other) throw new Error(`an earlier version of Countersign wrote ${path}; add --fresh to delete it`);
    return database;
  } catch (error) {
    database?.close();
    if (!/database is locked/.test(String(error))) throw error;
    throw new Error(`another local host is using ${dirname(path)}`, { cause: error });
  }
}
