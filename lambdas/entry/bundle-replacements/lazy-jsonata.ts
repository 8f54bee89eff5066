import { createRequire } from 'node:module';

type Jsonata = typeof import('jsonata');

let loaded: Jsonata | undefined;

/**
 * Bundles contain this file in place of `jsonata` (lib/bundle-functions.ts), so that a function reads and evaluates its 200 KB with the
 * first expression instead of on every start.
 */
const jsonata = (...parameters: Parameters<Jsonata>) => {
  loaded ??= createRequire(import.meta.url)('jsonata') as Jsonata;
  return loaded(...parameters);
};

export default jsonata;
