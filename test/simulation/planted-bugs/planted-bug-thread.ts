import { createRequire, isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { compileFunction } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import type { Job, runJob } from '../jobs.ts';
import type { CompiledSimulation } from './compiled-simulation.ts';

/** A bug and where to look for it. */
export interface BugSearch {
  /** Path → CommonJS of the files that have the bug. */
  edited: ReadonlyMap<string, string>;
  jobs: Job[];
}

type Module = { exports: unknown };
type Instantiate = (require: (specifier: string) => unknown, module: Module, exports: unknown) => void;

const JOBS = join(import.meta.dirname, '..', 'jobs.ts');
const { modules, imports, packages } = workerData as CompiledSimulation;
const compiled = new Map([...modules].map(([path, code]) => [path, compiledAs(path, code)]));
const loaded = new Map(await Promise.all(packages.map(async (name) => [name, await loadPackage(name)] as const)));

/** Compiled once; a call makes the instance of one bug. */
function compiledAs(path: string, code: string): Instantiate {
  return compileFunction(code, ['require', 'module', 'exports'], { filename: path }) as Instantiate;
}

async function loadPackage(name: string): Promise<unknown> {
  // Not the ES module: a simulation replaces functions of `node:http`.
  if (isBuiltin(name)) return createRequire(import.meta.url)(name);
  return { ...(await import(name)), __esModule: true };
}

/** These modules, and all that import them, directly or not. */
function withImporters(paths: Iterable<string>): ReadonlySet<string> {
  const found = new Set(paths);
  // For each module found, also those that are added here.
  for (const path of found) {
    for (const [importer, imported] of imports) if (imported.includes(path)) found.add(importer);
  }
  return found;
}

/** Modules that no bug has reached, for all bugs: new instances would be compiled and optimized again. */
const shared = new Map<string, Module>();

/** The code with a bug in it. Bugs share the packages, and the modules that import no code with a bug. */
function simulationWith(edited: ReadonlyMap<string, string>): { runJob: typeof runJob } {
  const own = new Map<string, Module>();
  const affected = withImporters(edited.keys());
  const load = (path: string): unknown => {
    const instances = affected.has(path) ? own : shared;
    const found = instances.get(path);
    if (found) return found.exports;
    const module: Module = { exports: {} };
    instances.set(path, module);
    const code = edited.get(path);
    const instantiate = code === undefined ? compiled.get(path) : compiledAs(path, code);
    if (!instantiate) throw new Error(`${path} is not part of the simulation`);
    const require = (specifier: string) =>
      specifier.startsWith('.') ? load(join(dirname(path), specifier)) : loaded.get(specifier);
    instantiate(require, module, module.exports);
    return module.exports;
  };
  return load(JOBS) as { runJob: typeof runJob };
}

/** Responds with what was found first, if anything was. */
parentPort?.on('message', async ({ edited, jobs }: BugSearch) => {
  const simulation = simulationWith(edited);
  for (const job of jobs) {
    const { found } = await simulation.runJob(job);
    if (found) return parentPort?.postMessage({ found });
  }
  parentPort?.postMessage({});
});
