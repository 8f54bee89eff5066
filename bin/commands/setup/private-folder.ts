import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileFailure } from '../read-file.ts';

const OWNER_ONLY = { folder: 0o700, file: 0o600 };

/**
 * The folder of one tenant, for keys and secrets that are shown only once. Each is written here before it is sent, so an
 * interrupted command finds it again.
 */
export class PrivateFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  file(name: string): string {
    return join(this.path, name);
  }

  read(name: string): string | undefined {
    const file = this.file(name);
    return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  }

  write(name: string, content: string): void {
    const file = this.file(name);
    try {
      mkdirSync(this.path, { recursive: true, mode: OWNER_ONLY.folder });
      const draft = `${file}.${process.pid}`;
      writeFileSync(draft, `${content.trimEnd()}\n`, { mode: OWNER_ONLY.file });
      chmodSync(draft, OWNER_ONLY.file);
      renameSync(draft, file);
    } catch (cause) {
      throw fileFailure('write', file, cause);
    }
  }

  /** The stored text, or a new one. */
  readOrCreate(name: string, create: () => string): string {
    const stored = this.read(name);
    if (stored !== undefined) return stored;
    const created = create();
    this.write(name, created);
    return created;
  }
}
