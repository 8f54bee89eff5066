import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, transform } from 'esbuild';

export const ROOT = join(import.meta.dirname, '..', '..', '..');

/** The simulation and the code that it runs, as the thread of planted-bug-thread.ts takes it. */
export interface CompiledSimulation {
  /** Path → CommonJS. So each bug gets instances of its own, and what it does not change is compiled once for all bugs. */
  modules: ReadonlyMap<string, string>;
  /** Path → the paths of the modules that it imports. */
  imports: ReadonlyMap<string, readonly string[]>;
  packages: readonly string[];
}

export async function compileSimulation(): Promise<CompiledSimulation> {
  const { metafile } = await build({
    entryPoints: [join(import.meta.dirname, '..', 'jobs.ts')],
    absWorkingDir: ROOT,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
  });
  const inputs = Object.entries(metafile.inputs);
  const imports = inputs.flatMap(([, input]) => input.imports);
  const modules = inputs.map(async ([file]): Promise<[string, string]> => {
    const path = join(ROOT, file);
    return [path, await compile(path, readFileSync(path, 'utf8'))];
  });
  return {
    modules: new Map(await Promise.all(modules)),
    imports: new Map(
      inputs.map(([file, input]) => [
        join(ROOT, file),
        input.imports.flatMap(({ path, external }) => (external ? [] : [join(ROOT, path)])),
      ]),
    ),
    packages: [...new Set(imports.flatMap(({ path, external }) => (external ? [path] : [])))],
  };
}

/** With `transform`, because `build` would let a package's own `default` stand for all its names. */
export async function compile(path: string, text: string): Promise<string> {
  const { code } = await transform(text, { loader: path.endsWith('.json') ? 'json' : 'ts', format: 'cjs' });
  return code;
}
