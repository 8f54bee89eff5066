import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALLOWED, NOT_YET_CLEAN, RETIRED_WORDS } from './retired-words.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TEXT = '*.{ts,mts,mjs,md,yaml,yml,html,cedar,cedarschema,rego}';
const FOLDERS = '{agent,bench,bin,console,docs,events,lambdas,lib,local,policies,test,workflows}';
/** The list itself and the test of it, and what was written before the list. */
const NOT_CHECKED = ['test/style/retired-words.ts', 'test/style/words.test.ts', 'CHANGELOG.md'];

const JAVASCRIPT_PROMISE = /\bPromise(?![a-z])|\.promise\b|\/promises['"]|\bpromise(?=(: \w+)?, (resolve|reject)\b)/g;
const COMMENT_MARKER = /^\s*(\/\*\*?|\*\/?|\/\/|#+|>|-)\s+/;

interface Violation {
  path: string;
  line: number;
  word: string;
  write: string;
}

/** Finds retired words in a file's path (line 0) and text, also where a phrase continues on the next line. */
function violationsIn(path: string, text: string): Violation[] {
  const lines = [path, ...text.split('\n').map((line) => line.replace(COMMENT_MARKER, '').trim())];
  const allowed = ALLOWED.filter((each) => path.startsWith(each.in)).map((each) => each.text);
  const checked = lines.map((line) =>
    splitIdentifiers(allowed.reduce((rest, each) => rest.replace(each, ''), line.replace(JAVASCRIPT_PROMISE, ''))),
  );
  const starts = [0];
  for (const line of checked) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  const joined = checked.join(' ').toLowerCase();
  return RETIRED_WORDS.flatMap(({ pattern, write }) =>
    [...joined.matchAll(pattern)].map(({ index, 0: word }) => ({
      path,
      line: starts.findLastIndex((start) => start <= index),
      word,
      write,
    })),
  );
}

function splitIdentifiers(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/[-_/]/g, ' ');
}

function everyFile(): string[] {
  const files = globSync([`${FOLDERS}/**/${TEXT}`, TEXT], { cwd: ROOT, exclude: ['**/node_modules/**'] });
  return files.filter((path) => !NOT_CHECKED.includes(path)).sort();
}

const isClean = (path: string): boolean => !NOT_YET_CLEAN.some((start) => path.startsWith(start));
const shown = ({ path, line, word, write }: Violation): string => `${path}:${line}: "${word}"; write: ${write}`;

describe('retired words', () => {
  it('are in no file name, identifier, comment, text or document', () => {
    const files = everyFile();
    expect(files.length).toBeGreaterThan(500);
    const found = files
      .filter(isClean)
      .flatMap((path) => violationsIn(path, readFileSync(join(ROOT, path), 'utf8')))
      .map(shown);
    expect(found).toEqual([]);
  });

  it.each([
    ['lambdas/x/take-up.ts', '', 0],
    ['a.ts', 'const x = 1;\nawait takeUp(run);', 2],
    ['a.ts', '/** A write that was taken\n * back. */', 1],
    ['README.md', 'It keeps a\ntoken.', 1],
    ['a.ts', 'the promised effect', 1],
  ])('are found in %s: %j', (path, text, line) => {
    expect(violationsIn(path, text)).toMatchObject([{ path, line }]);
  });

  it.each([
    "import { readFile } from 'node:fs/promises';",
    'const { promise, resolve } = Promise.withResolvers<void>();',
    'async get(): Promise<string> { return this.#open.promise; }',
    'take the next one; back it up',
  ])('are not seen in %j', (text) => {
    expect(violationsIn('a.ts', text)).toEqual([]);
  });
});
