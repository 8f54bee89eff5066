/**
 * Bundles contain this file in place of `jsonata` (lib/bundle-functions.ts), so that a function evaluates its 120 KB with the first
 * expression instead of on every start. esbuild resolves this `require`.
 */
declare const require: (path: string) => typeof import('jsonata');

const jsonata = (...parameters: Parameters<typeof import('jsonata')>) =>
  require('../../node_modules/jsonata/jsonata.js')(...parameters);

export default jsonata;
