import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { synthesizeFirewall } from '../../infrastructure/firewall.ts';
import { LARGEST, STAGE } from '../../infrastructure/limits/largest-stage.ts';
import { STAGING } from '../../infrastructure/staging-stage.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Stage → the folder of its assembly, as `cdk synth` would leave it. */
    assemblies: Record<(typeof NAMES)[number], string>;
  }
}

/** Two stages of cdk.json, and stages of tests: here all share the modules of the CDK, which take seconds to load. */
const NAMES = ['local', 'acme-prod', 'idle', 'largest', 'firewall'] as const;
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
  const assemblies = Object.fromEntries(NAMES.map((name) => [name, join(folder, name)])) as Record<
    (typeof NAMES)[number],
    string
  >;
  await synthesize(assemblies.local, 'local');
  await synthesize(assemblies['acme-prod'], 'acme-prod');
  await synthesize(assemblies.idle, 'idle', { idle: STAGING });
  await synthesize(assemblies.largest, STAGE, { [STAGE]: LARGEST });
  await synthesizeFirewall(assemblies.firewall, STAGE, { [STAGE]: LARGEST });
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
