/** Storage of the local services that survives `kill -9`. */
import { renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { privateFile, privateFolder, writePrivateFile } from '../host/private-files.ts';

/** Another process may still use the file while it stops. */
const BUSY_TIMEOUT_MS = 5_000;
/** Of new files. A commit writes each changed page, and most transactions change a few hundred bytes in each. */
const PAGE_BYTES = 2_048;
/** 64 MB. A checkpoint writes each changed page once and waits for the disk, so fewer of them cost less. */
const PAGES_BETWEEN_CHECKPOINTS = 32_000;

/**
 * WAL with synchronous=NORMAL: a commit is a write without an fsync. It survives the end of the process, because the page cache
 * belongs to the kernel. A power failure may lose the last commits, but it does not corrupt the file.
 */
export function openDatabase(dataFolder: string, name: string, schema: string): DatabaseSync {
  privateFolder(dataFolder);
  const path = join(dataFolder, `${name}.sqlite`);
  privateFile(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;');
  database.exec(`PRAGMA wal_autocheckpoint = ${PAGES_BETWEEN_CHECKPOINTS}`);
  database.exec(schema);
  return database;
}

const statements = new WeakMap<DatabaseSync, { begin: StatementSync; commit: StatementSync }>();

export function inTransaction<Result>(database: DatabaseSync, run: () => Result): Result {
  let prepared = statements.get(database);
  if (!prepared) {
    prepared = { begin: database.prepare('BEGIN IMMEDIATE'), commit: database.prepare('COMMIT') };
    statements.set(database, prepared);
  }
  prepared.begin.run();
  try {
    const result = run();
    prepared.commit.run();
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

/** Replaces a file atomically. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  privateFolder(dirname(path));
  const temporary = `${path}.${process.pid}.tmp`;
  writePrivateFile(temporary, content);
  renameSync(temporary, path);
}
