import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { privateFolder } from '../../host/private-files.ts';
import { inTransaction, openDatabase, replaceFile } from '../durable-file.ts';

export type LockMode = 'GOVERNANCE' | 'COMPLIANCE';

export interface ObjectVersion {
  seq: number;
  bucket: string;
  key: string;
  versionId: string;
  latest: number;
  deleteMarker: number;
  etag: string;
  size: number;
  /** Content-Type, x-amz-meta-* and the like, as JSON. */
  headers: string;
  modifiedMs: number;
  lockMode: LockMode | null;
  retainUntilMs: number | null;
  /** Name of the file with the bytes; empty for a delete marker. */
  file: string;
}

export type NewVersion = Omit<ObjectVersion, 'seq' | 'latest' | 'file'>;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS versions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  bucket TEXT NOT NULL, key TEXT NOT NULL, versionId TEXT NOT NULL,
  latest INTEGER NOT NULL, deleteMarker INTEGER NOT NULL,
  etag TEXT NOT NULL, size INTEGER NOT NULL, headers TEXT NOT NULL, modifiedMs REAL NOT NULL,
  lockMode TEXT, retainUntilMs REAL, file TEXT NOT NULL,
  UNIQUE (bucket, key, versionId)
);
CREATE INDEX IF NOT EXISTS latest_by_key ON versions (bucket, key) WHERE latest = 1;`;

/**
 * Rows in sqlite name files of bytes. File names are hashes, so no key can leave the folder. The file is complete before
 * its row is committed; a crash in between leaves an unnamed file, which the next start removes. Everything is synchronous:
 * a condition and the write it guards cannot be interleaved with another request's.
 */
export class S3Store {
  readonly #folder: string;
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 's3');
    privateFolder(this.#folder);
    this.#database = openDatabase(dataFolder, 's3', SCHEMA);
    this.#statements = prepare(this.#database);
    this.#removeUnnamedFiles();
  }

  latest(bucket: string, key: string): ObjectVersion | undefined {
    return this.#statements.latest.get(bucket, key) as ObjectVersion | undefined;
  }

  version(bucket: string, key: string, versionId: string): ObjectVersion | undefined {
    return this.#statements.version.get(bucket, key, versionId) as ObjectVersion | undefined;
  }

  bytes({ file }: ObjectVersion): Buffer {
    return readFileSync(this.#path(file));
  }

  /** Adds the latest version of a key; in an unversioned bucket (`versionId` "null") it replaces the one before. */
  add(version: NewVersion, body: Buffer | undefined): void {
    const file = body === undefined ? '' : `${createHash('sha256').update(version.key).digest('hex')}.${randomUUID()}`;
    if (body !== undefined) replaceFile(this.#path(file), body);
    const replaced = this.version(version.bucket, version.key, version.versionId);
    inTransaction(this.#database, () => {
      if (replaced !== undefined) this.#statements.remove.run(replaced.seq);
      this.#statements.notLatest.run(version.bucket, version.key);
      this.#statements.add.run({ ...version, file });
    });
    this.#removeFile(replaced);
  }

  remove(version: ObjectVersion): void {
    inTransaction(this.#database, () => {
      this.#statements.remove.run(version.seq);
      this.#statements.newestIsLatest.run(version.bucket, version.key);
    });
    this.#removeFile(version);
  }

  setRetention({ seq }: ObjectVersion, mode: LockMode, retainUntilMs: number): void {
    this.#statements.retain.run(mode, retainUntilMs, seq);
  }

  /** Latest versions in the order of their UTF-8 bytes, from `from` on; lazily, the caller stops when it has enough. */
  listLatest(bucket: string, from: string): Iterable<ObjectVersion> {
    return this.#statements.listLatest.iterate(bucket, from) as Iterable<unknown> as Iterable<ObjectVersion>;
  }

  listVersions(bucket: string, from: string): Iterable<ObjectVersion> {
    return this.#statements.listVersions.iterate(bucket, from) as Iterable<unknown> as Iterable<ObjectVersion>;
  }

  close(): void {
    this.#database.close();
  }

  #path(file: string): string {
    return join(this.#folder, file.slice(0, 2), file);
  }

  #removeFile(version: ObjectVersion | undefined): void {
    if (version !== undefined && version.file !== '') rmSync(this.#path(version.file), { force: true });
  }

  #removeUnnamedFiles(): void {
    const named = new Set(this.#statements.files.all().map(({ file }) => String(file)));
    for (const entry of readdirSync(this.#folder, { recursive: true, withFileTypes: true })) {
      if (entry.isFile() && !named.has(entry.name)) rmSync(join(entry.parentPath, entry.name), { force: true });
    }
  }
}

function prepare(database: DatabaseSync) {
  const sql = (text: string) => database.prepare(text);
  return {
    latest: sql('SELECT * FROM versions WHERE bucket = ? AND key = ? AND latest = 1'),
    version: sql('SELECT * FROM versions WHERE bucket = ? AND key = ? AND versionId = ?'),
    add: sql(`INSERT INTO versions (bucket, key, versionId, latest, deleteMarker, etag, size, headers, modifiedMs, lockMode,
              retainUntilMs, file) VALUES (:bucket, :key, :versionId, 1, :deleteMarker, :etag, :size, :headers, :modifiedMs,
              :lockMode, :retainUntilMs, :file)`),
    notLatest: sql('UPDATE versions SET latest = 0 WHERE bucket = ? AND key = ? AND latest = 1'),
    newestIsLatest: sql(`UPDATE versions SET latest = 1
                         WHERE seq = (SELECT MAX(seq) FROM versions WHERE bucket = ? AND key = ?)`),
    remove: sql('DELETE FROM versions WHERE seq = ?'),
    retain: sql('UPDATE versions SET lockMode = ?, retainUntilMs = ? WHERE seq = ?'),
    listLatest: sql(`SELECT * FROM versions WHERE bucket = ? AND latest = 1 AND deleteMarker = 0 AND key >= ?
                     ORDER BY key`),
    listVersions: sql('SELECT * FROM versions WHERE bucket = ? AND key >= ? ORDER BY key, seq DESC'),
    files: sql("SELECT file FROM versions WHERE file <> ''"),
  };
}
