import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A policy of the folder `rego`, compiled by OPA itself. */
export function compiledRego(name: string) {
  const wasm = readFileSync(join(import.meta.dirname, 'rego', `${name}.wasm.gz`));
  return { engine: 'rego' as const, wasmGzipBase64: wasm.toString('base64') };
}
