import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The policies that ship with Countersign, identical for every tenant. */
export interface ShippedPolicies {
  schema: string;
  /** By file name. */
  files: Record<string, string>;
}

/** In a function next to the bundle (see lib/bundle-functions.ts), in a checkout at the repository root. */
export function shippedFolder(): string {
  const besideBundle = join(import.meta.dirname, 'policies');
  const inRepository = join(import.meta.dirname, '..', '..', 'policies');
  return existsSync(besideBundle) ? besideBundle : inRepository;
}

export function readShippedPolicies(): ShippedPolicies {
  const folder = shippedFolder();
  const text = (file: string) => readFileSync(join(folder, file), 'utf8');
  return { schema: text('schema.cedarschema'), files: { 'default.cedar': text('default.cedar') } };
}
