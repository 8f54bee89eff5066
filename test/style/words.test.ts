import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Violation, violationsIn } from './find-retired-words.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TEXT = '*.{ts,tsx,mts,mjs,md,yaml,yml,html,cedar,cedarschema,rego}';
const FOLDERS = '{agent,bench,bin,client,console,docs,events,lambdas,lib,local,policies,test,workflows}';
/** The list and its test. */
const NOT_CHECKED = ['test/style/retired-words.ts', 'test/style/words.test.ts'];

function everyFile(): string[] {
  const files = globSync([`${FOLDERS}/**/${TEXT}`, TEXT], { cwd: ROOT, exclude: ['**/node_modules/**'] });
  return files.filter((path) => !NOT_CHECKED.includes(path)).sort();
}

const shown = ({ path, line, word, write }: Violation): string => `${path}:${line}: "${word}"; write: ${write}`;

describe('retired words', () => {
  it('are in no file name, identifier, comment, text or document', () => {
    const files = everyFile();
    expect(files.length).toBeGreaterThan(500);
    const found = files.flatMap((path) => violationsIn(path, readFileSync(join(ROOT, path), 'utf8'))).map(shown);
    expect(found).toEqual([]);
  });

  it.each([
    ['lambdas/x/take-up.ts', '', 0],
    ['a.ts', 'const x = 1;\nawait thisWasKept(run);', 2],
    ['a.ts', '/** A write that was taken\n * back. */', 1],
    ['README.md', 'It keeps a\ntoken.', 1],
    ['a.ts', 'the promised effect', 1],
  ])('are found in %s: %j', (path, text, line) => {
    expect(violationsIn(path, text)).toMatchObject([{ path, line }]);
  });

  it.each([
    "import { readFile } from 'node:fs/promises';",
    'const { promise, resolve } = Promise.withResolvers<void>();',
    'this: PromiseConstructor; const promise = new this<T>(start);',
    'async get(): Promise<string> { return this.#open.promise; }',
    'take the next one; back it up',
  ])('are not seen in %j', (text) => {
    expect(violationsIn('a.ts', text)).toEqual([]);
  });
});
