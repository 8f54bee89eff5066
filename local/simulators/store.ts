import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { privateFile, privateFolder } from '../host/private-files.ts';

/** One kind of thing a simulated system keeps, in insertion order. `parent` is what its things are listed by. */
export interface Collection<T> {
  get(id: string): T | undefined;
  /** Inserts or replaces; a replaced thing keeps its place in the order. */
  put(id: string, thing: T, parent?: string): void;
  delete(id: string): void;
  /** Oldest first. */
  list(parent?: string): T[];
  /** Newest first, at most `limit`: for reads that must not grow with the data, like the page. */
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
  CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
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

const CHANGES = 'changes';

/**
 * Everything the simulators know, in one SQLite file. A write-ahead log with synchronous=NORMAL survives `kill -9` of the
 * host without a flush per commit; only a power cut could lose the last moments, which a simulator may.
 */
export class SimulatorStore {
  readonly database: DatabaseSync;
  #depth = 0;

  constructor(dataFolder: string) {
    privateFolder(dataFolder);
    const path = join(dataFolder, 'simulators.sqlite');
    privateFile(path);
    this.database = new DatabaseSync(path);
    this.database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;');
    this.database.exec(SCHEMA);
  }

  close(): void {
    this.database.close();
  }

  /** All or nothing. A transaction within one joins it. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    this.#depth++;
    this.database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.next(CHANGES);
      this.database.exec('COMMIT');
      return result;
    } catch (error) {
      this.database.exec('ROLLBACK');
      throw error;
    } finally {
      this.#depth--;
    }
  }

  /** Grows with every transaction, so that a reader can tell "nothing happened" without comparing everything. */
  changes(): number {
    return this.#read(CHANGES);
  }

  /** The next number of a named sequence: never repeated, also after a restart. `atLeast` lets it follow the clock. */
  next(name: string, atLeast = 1): number {
    const value = Math.max(this.#read(name) + 1, atLeast);
    this.database.prepare('INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)').run(name, value);
    return value;
  }

  /** An identifier that needs no randomness: unique because its number is. */
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

  #read(counter: string): number {
    return Number(this.database.prepare('SELECT value FROM counters WHERE name = ?').get(counter)?.value ?? 0);
  }
}

/** Hex digits that are the same on every machine, so that examples and tests can name seeded things. */
export function stableId(name: string, length: number): string {
  return createHash('sha256').update(name).digest('hex').slice(0, length);
}
