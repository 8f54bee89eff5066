import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The policies that ship with Countersign, identical for every tenant. */
export interface ShippedPolicies {
  schema: string;
  /** By file name. */
  files: Record<string, string>;
}

/** In a function next to the bundle (see lib/bundle-functions.ts), in a checkout at the repository root. */
export function readShippedPolicies(): ShippedPolicies {
  const besideBundle = join(import.meta.dirname, 'policies');
  const inRepository = join(import.meta.dirname, '..', '..', 'policies');
  const folder = existsSync(besideBundle) ? besideBundle : inRepository;
  const text = (file: string) => readFileSync(join(folder, file), 'utf8');
  return { schema: text('schema.cedarschema'), files: { 'default.cedar': text('default.cedar') } };
}
