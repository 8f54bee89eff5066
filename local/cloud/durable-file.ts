/** Storage of the local services that survives `kill -9`. */
import { renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { privateFile, privateFolder, writePrivateFile } from '../host/private-files.ts';

/** Another process may still use the file while it stops. */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * WAL with synchronous=NORMAL: a commit is a write without an fsync. It survives the end of the process, because the page cache
 * belongs to the kernel. A power failure may lose the last commits, but it does not corrupt the file.
 */
export function openDatabase(dataFolder: string, name: string, schema: string): DatabaseSync {
  privateFolder(dataFolder);
  const path = join(dataFolder, `${name}.sqlite`);
  privateFile(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;');
  database.exec(schema);
  return database;
}

export function inTransaction<Result>(database: DatabaseSync, run: () => Result): Result {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = run();
    database.exec('COMMIT');
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
