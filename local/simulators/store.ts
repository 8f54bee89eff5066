import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { openDatabase } from '../cloud/durable-file.ts';

/** One kind of record of a simulated system, in insertion order. Records can be listed by `parent`. */
export interface Collection<T> {
  get(id: string): T | undefined;
  /** Inserts or replaces. A replaced record stays at its position. */
  put(id: string, thing: T, parent?: string): void;
  delete(id: string): void;
  /** Oldest first. */
  list(parent?: string): T[];
  /** Newest first, at most `limit`. */
  latest(limit: number, parent?: string): T[];
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS things (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (collection, id)
  );
  CREATE INDEX IF NOT EXISTS things_by_parent ON things (collection, parent, position);
  CREATE INDEX IF NOT EXISTS things_by_collection ON things (collection, position);
  CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS calls (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    system TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    body TEXT NOT NULL,
    status INTEGER NOT NULL,
    answer TEXT
  );
`;

/**
 * All data of the simulators in one SQLite file. It survives `kill -9` (see `openDatabase`).
 */
export class SimulatorStore {
  readonly database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;
  #depth = 0;
  /** Begins with the time of the start in microseconds, because a reader may have a number of an earlier start. */
  #changes = Date.now() * 1000;

  constructor(dataFolder: string) {
    this.database = openDatabase(dataFolder, 'simulators', SCHEMA);
    this.#statements = prepare(this.database);
  }

  close(): void {
    this.database.close();
  }

  /** Commits everything or nothing. A nested transaction joins the outer one. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    this.#depth++;
    this.#statements.begin.run();
    try {
      const result = work();
      this.#statements.commit.run();
      this.#changes++;
      return result;
    } catch (error) {
      this.database.exec('ROLLBACK');
      throw error;
    } finally {
      this.#depth--;
    }
  }

  /** Grows with every transaction, so that a reader can detect that nothing has changed. */
  changes(): number {
    return this.#changes;
  }

  /** The next number of a named sequence. Numbers do not repeat, also after a restart. `atLeast` follows the clock. */
  next(name: string, atLeast = 1): number {
    return Number(this.#statements.next.get(name, atLeast)?.value);
  }

  /** A unique identifier, derived from the next number of a sequence. */
  nextId(name: string, length: number): string {
    return stableId(`${name}:${this.next(name)}`, length);
  }

  collection<T>(name: string): Collection<T> {
    const one = this.database.prepare('SELECT body FROM things WHERE collection = ? AND id = ?');
    const upsert = this.database.prepare(
      `INSERT INTO things (collection, id, parent, body) VALUES (?, ?, ?, ?)
       ON CONFLICT (collection, id) DO UPDATE SET parent = excluded.parent, body = excluded.body`,
    );
    const remove = this.database.prepare('DELETE FROM things WHERE collection = ? AND id = ?');
    const all = this.database.prepare('SELECT body FROM things WHERE collection = ? ORDER BY position');
    const ofParent = this.database.prepare(
      'SELECT body FROM things WHERE collection = ? AND parent = ? ORDER BY position',
    );
    const newest = this.database.prepare('SELECT body FROM things WHERE collection = ? ORDER BY position DESC LIMIT ?');
    const newestOfParent = this.database.prepare(
      'SELECT body FROM things WHERE collection = ? AND parent = ? ORDER BY position DESC LIMIT ?',
    );
    const parse = (row: Record<string, unknown> | undefined): T => JSON.parse(String(row?.body)) as T;
    return {
      get: (id) => {
        const row = one.get(name, id);
        return row === undefined ? undefined : parse(row);
      },
      put: (id, thing, parent = '') => void upsert.run(name, id, parent, JSON.stringify(thing)),
      delete: (id) => void remove.run(name, id),
      list: (parent) => (parent === undefined ? all.all(name) : ofParent.all(name, parent)).map(parse),
      latest: (limit, parent) =>
        (parent === undefined ? newest.all(name, limit) : newestOfParent.all(name, parent, limit)).map(parse),
    };
  }
}

/** Statements of every call. SQLite takes longer to parse them than to run them. */
const prepare = (database: DatabaseSync) => ({
  begin: database.prepare('BEGIN IMMEDIATE'),
  commit: database.prepare('COMMIT'),
  next: database.prepare(
    `INSERT INTO counters (name, value) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET value = max(value + 1, excluded.value) RETURNING value`,
  ),
});

/** Hex digits that are the same on every machine, so that examples and tests can name seeded records. */
export function stableId(name: string, length: number): string {
  return hash('sha256', name, 'hex').slice(0, length);
}
