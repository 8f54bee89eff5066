import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Stage → the folder of its assembly, as `cdk synth` would leave it. */
    assemblies: Record<'local' | 'acme-prod', string>;
  }
}

const BUILD = join(import.meta.dirname, '..', '..', '..', '.build');
const USES_ASSEMBLIES = "inject('assemblies')";
const RELATIVE_IMPORT = /(?:from|import\()\s*'(\.[^']+\.ts)'/g;

/**
 * Runs the CDK app once for all test files. Each test run has its own folder, so two of them can run in parallel. A test run
 * whose files use no assembly creates none, because that takes longer than most of them.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  // The names on the command line. Vitest has no public name for them.
  const { filenamePattern } = project.vitest as { filenamePattern?: string[] };
  const { testFiles } = await project.globTestFiles(filenamePattern);
  const seen = new Set<string>();
  if (!testFiles.some((file) => usesAssemblies(file, seen))) return () => undefined;
  const { synthesize } = await import('../../../local/template/synthesize.ts');
  mkdirSync(BUILD, { recursive: true });
  const folder = mkdtempSync(join(BUILD, 'test-assembly-'));
  const assemblies = { local: join(folder, 'local'), 'acme-prod': join(folder, 'acme-prod') };
  await synthesize(assemblies.local, 'local');
  await synthesize(assemblies['acme-prod'], 'acme-prod');
  // `synthesize` leaves the checks off; the tests that want them run the app in a process of its own.
  delete process.env.CDK_VALIDATION;
  project.provide('assemblies', assemblies);
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Whether a test file, or a file that it imports from the folder of tests, reads an assembly. */
function usesAssemblies(file: string, seen: Set<string>): boolean {
  if (seen.has(file) || !existsSync(file) || !file.includes('/test/')) return false;
  seen.add(file);
  const source = readFileSync(file, 'utf8');
  if (source.includes(USES_ASSEMBLIES) && !file.endsWith('/synthesize-once.ts')) return true;
  const imported = [...source.matchAll(RELATIVE_IMPORT)].map(([, path = '']) => join(dirname(file), path));
  return imported.some((each) => usesAssemblies(each, seen));
}
