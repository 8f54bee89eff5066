import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Set by the build of the single-file program (bin/build/build-cli.ts). */
declare const COUNTERSIGN_VERSION: string | undefined;

export function packageVersion(): string {
  if (typeof COUNTERSIGN_VERSION !== 'undefined') return COUNTERSIGN_VERSION;
  return String(JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8')).version);
}
