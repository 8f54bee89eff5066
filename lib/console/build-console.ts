import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { contentsOf, readRecord } from '../build-if-changed.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const BUILDER = join(ROOT, 'console', 'build.ts');
interface BuildRecord {
  /** Every file that Vite read, relative to the root. */
  files: string[];
  contents: string;
}

/**
 * Builds the console into the folder, in a process of its own: about 2 s. Builds again only if a file that the last build
 * read has changed. Returns a hash of what was built, which does not depend on where the sources are.
 */
export function buildConsole(outputFolder: string, recordFile: string): string {
  const last = readRecord<BuildRecord>(recordFile);
  if (last && existsSync(join(outputFolder, 'index.html')) && contentsOf(last.files, ROOT) === last.contents) {
    return builtIn(outputFolder);
  }
  const unfinished = `${outputFolder}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  // Tests set another NODE_ENV, with which React would be the larger and slower one for development.
  const env = { ...process.env, NODE_ENV: 'production' };
  const read = execFileSync(process.execPath, [BUILDER, unfinished], { cwd: ROOT, encoding: 'utf8', env });
  const files: string[] = JSON.parse(read);
  // Another process may have replaced it meanwhile, with the same files.
  rmSync(outputFolder, { recursive: true, force: true });
  renameSync(unfinished, outputFolder);
  const record: BuildRecord = { files, contents: contentsOf(files, ROOT) };
  writeFileSync(recordFile, JSON.stringify(record));
  return builtIn(outputFolder);
}

function builtIn(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return contentsOf(files.sort(), folder);
}
