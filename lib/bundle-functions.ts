import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buildSync } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'lambdas');

/** Some dependencies are CommonJS and call `require`; ESM on Lambda has none of its own. */
const REQUIRE_FOR_COMMONJS =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

/** Where the bundle of each entry point is: `intake/github` → a folder with its index.mjs. */
export type FunctionBundles = (entry: string) => string;

/** Bundles every `*.lambda.ts` in one call: one small minified ESM file for each function, nothing shared at run time. */
export function bundleFunctions(outputFolder = join(ROOT, '.build', 'functions')): FunctionBundles {
  const entries = globSync('**/*.lambda.ts', { cwd: SOURCE }).map((file) => file.replace(/\.lambda\.ts$/, ''));
  const { outputFiles } = buildSync({
    entryPoints: Object.fromEntries(entries.map((entry) => [join(entry, 'index'), join(SOURCE, `${entry}.lambda.ts`)])),
    outdir: outputFolder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    minify: true,
    // Names are part of what logs say and of how errors are told apart.
    keepNames: true,
    banner: { js: REQUIRE_FOR_COMMONJS },
    logLevel: 'warning',
    write: false,
  });
  for (const { path, contents } of outputFiles) replaceIfChanged(path, contents);
  return (entry) => {
    if (!entries.includes(entry)) {
      throw new Error(
        `${relative(ROOT, join(SOURCE, entry))}.lambda.ts does not exist; there are ${entries.join(', ')}`,
      );
    }
    return dirname(join(outputFolder, entry, 'index.mjs'));
  };
}

/** Another process may be reading the same bundle: it sees the old file or the new one, never half of one. */
function replaceIfChanged(path: string, contents: Uint8Array): void {
  if (existsSync(path) && readFileSync(path).equals(contents)) return;
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, path);
}
