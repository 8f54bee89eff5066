import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { buildOf } from '../../../lib/bundle-functions.ts';
import { readAssembly } from '../../../local/template/synthesize.ts';
import { temporaryFolder } from '../../local/cloud/wire.ts';
import { STAGES } from '../synthesized.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const SOURCES = { 'lambdas/a.ts': '1', 'lambdas/b/c.ts': '2', 'policies/default.cedar': '3', 'package-lock.json': '4' };

function sources(name: string, files: Record<string, string>): string {
  const root = join(folder.path, name);
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
  }
  return root;
}

it('the id of a build depends on its sources only', () => {
  const builds = [
    SOURCES,
    ...Object.keys(SOURCES).map((file) => ({ ...SOURCES, [file]: 'changed' })),
    { ...SOURCES, 'lambdas/d.ts': '' },
  ].map((files, index) => buildOf(sources(String(index), files)));
  expect(new Set(builds).size).toBe(builds.length);
  expect(buildOf(sources('again', { ...SOURCES, 'README.md': 'x' }))).toBe(builds[0]);
});

it.each(STAGES)('the seal function of stage %s has the id of its build', (stage) => {
  const { template, codeFolder } = readAssembly(inject('assemblies')[stage], stage);
  const functions = Object.entries(template.Resources ?? {}).filter(([, { Type }]) => Type === 'AWS::Lambda::Function');
  const [, seal] = functions.find(([id]) => id.startsWith('EvidenceVaultSeal')) ?? [];
  const code = seal?.Properties?.Code as { S3Key: string } | undefined;
  const bundle = readFileSync(join(codeFolder(code?.S3Key ?? ''), 'index.mjs'), 'utf8');
  expect(bundle).toContain(buildOf(join(import.meta.dirname, '..', '..', '..')));
});
