import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { synthesize } from '../../local/template/synthesize.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Stage → the folder of its assembly, as `cdk synth` would leave it. */
    assemblies: Record<'local' | 'acme-prod', string>;
  }
}

const BUILD = join(import.meta.dirname, '..', '..', '.build');

/** Runs the CDK app once for all test files. The folder is this test run's own: two of them side by side do not meet. */
export default async function setup(project: TestProject): Promise<() => void> {
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
