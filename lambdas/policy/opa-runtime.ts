import { createRequire } from 'node:module';

export type Opa = typeof import('@open-policy-agent/opa-wasm');

/** Loaded only for tenants that use it. */
export function loadOpa(): Opa {
  return createRequire(import.meta.url)('@open-policy-agent/opa-wasm') as Opa;
}
