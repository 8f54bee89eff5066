import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of Countersign that is deployed. */
export const packageVersion = (): string =>
  String(JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8')).version);
