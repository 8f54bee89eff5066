import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The policies that come with Countersign, the same for every tenant. */
export interface ShippedPolicies {
  schema: string;
  /** By file name. */
  files: Record<string, string>;
}

/** A bundle has them beside it (lib/bundle-functions.ts puts them there); the source has them at the repository's root. */
export function readShippedPolicies(): ShippedPolicies {
  const besideBundle = join(import.meta.dirname, 'policies');
  const inRepository = join(import.meta.dirname, '..', '..', 'policies');
  const folder = existsSync(besideBundle) ? besideBundle : inRepository;
  const text = (file: string) => readFileSync(join(folder, file), 'utf8');
  return { schema: text('schema.cedarschema'), files: { 'default.cedar': text('default.cedar') } };
}
