import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** JavaScript of the console, in KB of 1,024 bytes with gzip. */
export const CONSOLE_BUDGET_KB = { all: 350, firstPage: 200 };

const IMPORTED = /(?:from|import)\s*"\.\/([^"]+\.js)"/g;
/** Minified code writes quotes of all kinds. */
const QUOTES = /[`']/g;

/** The size of all scripts of a built console, and of those that its first page (the inbox) loads. */
export function consoleSizes(siteFolder: string): { allKb: number; firstPageKb: number; styleKb: number } {
  const assets = join(siteFolder, 'assets');
  const names = readdirSync(assets);
  const sizeOf = (name: string) => gzipSync(readFileSync(join(assets, name))).length / 1024;
  const total = (chosen: readonly string[]) => Math.round(chosen.reduce((sum, name) => sum + sizeOf(name), 0));
  const page = readFileSync(join(siteFolder, 'index.html'), 'utf8');
  const entries = [...page.matchAll(/assets\/([^"]+\.js)"/g)].map(([, name = '']) => name);
  const inbox = names.filter((name) => name.startsWith('inbox-page-') && name.endsWith('.js'));
  return {
    allKb: total(names.filter((name) => name.endsWith('.js'))),
    firstPageKb: total([...loadedBy(assets, [...entries, ...inbox])]),
    styleKb: total(names.filter((name) => name.endsWith('.css'))),
  };
}

/** These scripts and what they import statically. */
function loadedBy(assets: string, names: readonly string[], loaded = new Set<string>()): Set<string> {
  for (const name of names) {
    if (loaded.has(name)) continue;
    loaded.add(name);
    const text = readFileSync(join(assets, name), 'utf8').replaceAll(QUOTES, '"');
    loadedBy(
      assets,
      [...text.matchAll(IMPORTED)].map(([, imported = '']) => imported),
      loaded,
    );
  }
  return loaded;
}
