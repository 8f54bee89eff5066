import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  globSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
/** Everything that an assembly is made of. Packages are pinned by the lockfile. */
const SOURCES = [
  '{bin,client,console,docs,lambdas,lib,policies}/**/*',
  'cdk.json',
  'package.json',
  'package-lock.json',
];
/** A host has its own links to the files, so deleting an assembly from the cache does not affect it. */
const ASSEMBLIES_MAX = 8;

/**
 * Fills the folder with the assembly of these sources and settings: from the cache, or with `make` if they are new. Making
 * it takes most of the time of a start, and the sources rarely change between two starts.
 */
export async function cachedAssembly(
  folder: string,
  settings: unknown,
  make: (folder: string) => Promise<void>,
  root = ROOT,
): Promise<void> {
  const cache = join(root, '.build', 'assemblies');
  const cached = join(cache, hashOfSources(root, settings));
  if (!existsSync(cached)) {
    mkdirSync(cache, { recursive: true });
    const made = `${cached}.${process.pid}`;
    rmSync(made, { recursive: true, force: true });
    await make(made);
    // Another process may have made the same assembly meanwhile.
    if (existsSync(cached)) rmSync(made, { recursive: true, force: true });
    else renameSync(made, cached);
  }
  const now = new Date();
  utimesSync(cached, now, now);
  rmSync(folder, { recursive: true, force: true });
  linkFiles(cached, folder);
  deleteOldest(cache);
}

function hashOfSources(root: string, settings: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(settings ?? null));
  for (const file of globSync(SOURCES, { cwd: root }).sort()) {
    const path = join(root, file);
    if (statSync(path).isFile()) hash.update(`\n${file}\n`).update(readFileSync(path));
  }
  return hash.digest('hex').slice(0, 32);
}

function linkFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(to, source.slice(from.length));
    mkdirSync(dirname(target), { recursive: true });
    try {
      linkSync(source, target);
    } catch {
      // The folder is on another file system.
      copyFileSync(source, target);
    }
  }
}

function deleteOldest(cache: string): void {
  const folders = readdirSync(cache).map((name) => join(cache, name));
  const newestFirst = folders
    .flatMap((path) => statSync(path, { throwIfNoEntry: false }) ?? [])
    .map(({ mtimeMs }) => mtimeMs)
    .sort((a, b) => b - a);
  const oldestRetained = newestFirst[ASSEMBLIES_MAX - 1] ?? 0;
  for (const path of folders) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && found.mtimeMs < oldestRetained) rmSync(path, { recursive: true, force: true });
  }
}
