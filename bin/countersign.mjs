#!/usr/bin/env node
import * as nodeModule from 'node:module';
import { join } from 'node:path';

// Not TypeScript, because loading the compiler of types takes longer than most commands: with this cache nothing is compiled
// after the first start. Without write access, Node skips the cache.
if (process.features.typescript) {
  nodeModule.enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'countersign'));
  await import('./countersign.ts');
} else {
  console.error(
    `countersign needs the Node.js that npm ci installs, and this is ${process.version}; run: npx countersign …`,
  );
  process.exitCode = 2;
}
