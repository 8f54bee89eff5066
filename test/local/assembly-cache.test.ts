import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cachedAssembly } from '../../local/template/assembly-cache.ts';

let root: string;
let made: number;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'countersign-assembly-'));
  made = 0;
  mkdirSync(join(root, 'lib'));
  writeFileSync(join(root, 'lib', 'stack.ts'), 'one');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const assemble = (folder: string, settings: unknown = 'local') =>
  cachedAssembly(
    join(root, folder),
    settings,
    async (outdir) => {
      made += 1;
      mkdirSync(join(outdir, 'asset.1'), { recursive: true });
      writeFileSync(join(outdir, 'asset.1', 'index.mjs'), `assembly ${made}`);
    },
    root,
  );
const codeIn = (folder: string) => readFileSync(join(root, folder, 'asset.1', 'index.mjs'), 'utf8');

describe('the assembly cache', () => {
  it('makes an assembly once for the same sources and settings', async () => {
    await assemble('first');
    await assemble('second');
    expect(made).toBe(1);
    expect(codeIn('second')).toBe('assembly 1');
  });

  it('makes another one when a source is changed or added, or for other settings', async () => {
    await assemble('host');
    writeFileSync(join(root, 'lib', 'stack.ts'), 'two');
    await assemble('host');
    expect(codeIn('host')).toBe('assembly 2');
    writeFileSync(join(root, 'lib', 'added.ts'), '');
    await assemble('host');
    expect(codeIn('host')).toBe('assembly 3');
    await assemble('host', 'acme-prod');
    expect(codeIn('host')).toBe('assembly 4');
  });

  it('deletes old assemblies, and a host that uses one keeps its files', async () => {
    await assemble('host');
    for (let at = 0; at < 12; at += 1) await assemble('other', at);
    expect(readdirSync(join(root, '.build', 'assemblies')).length).toBeLessThan(12);
    expect(codeIn('host')).toBe('assembly 1');
  });

  it('leaves nothing in the cache when the assembly cannot be made', async () => {
    const failing = cachedAssembly(join(root, 'host'), 'local', () => Promise.reject(new Error('no such stage')), root);
    await expect(failing).rejects.toThrow('no such stage');
    expect(existsSync(join(root, 'host'))).toBe(false);
    await assemble('host');
    expect(codeIn('host')).toBe('assembly 1');
  });
});
