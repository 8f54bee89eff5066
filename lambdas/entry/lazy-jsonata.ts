import { createRequire } from 'node:module';

/**
 * Bundles contain this file in place of `jsonata` (lib/bundle-functions.ts), so that a function reads and evaluates its 200 KB with the
 * first expression instead of on every start.
 */
const jsonata = (...parameters: Parameters<typeof import('jsonata')>) =>
  (createRequire(import.meta.url)('jsonata') as typeof import('jsonata'))(...parameters);

export default jsonata;
