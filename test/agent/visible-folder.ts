import { mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
/** In a sandbox these are new, empty folders. */
const TEMPORARY = /^\/(var\/)?tmp\//;

const othersCanEnter = (path: string): boolean =>
  (statSync(path).mode & 0o001) !== 0 && (path === '/' || othersCanEnter(dirname(path)));

/**
 * A new folder that commands can see and reach. A test run by root starts commands as another user, who may be unable to
 * enter the clone.
 */
export function visibleFolder(name: string): string {
  const build = join(ROOT, '.build');
  mkdirSync(build, { recursive: true });
  const isRoot = process.getuid?.() === 0;
  const isVisible = !TEMPORARY.test(build) && othersCanEnter(build);
  return mkdtempSync(join(isRoot && !isVisible ? '/opt' : build, `${name}-`));
}
