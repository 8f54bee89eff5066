import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The types of Node.js do not have it. */
const { Module } = (globalThis as unknown as { WebAssembly: { Module: new (code: Buffer) => object } }).WebAssembly;

const read = new Set<string>();
const modules = new Map<string, object>();

/**
 * Retains the WebAssembly in the code of a function. V8 shares compiled WebAssembly between the threads of a process while one of
 * them has it. Otherwise each new thread of a worker compiles the policy engine again, which takes as long as the rest of its start.
 */
export function retainWebAssembly(codeFolder: string): void {
  if (read.has(codeFolder)) return;
  read.add(codeFolder);
  for (const file of globSync('**/*.wasm', { cwd: codeFolder })) {
    if (!modules.has(file)) modules.set(file, new Module(readFileSync(join(codeFolder, file))));
  }
}
