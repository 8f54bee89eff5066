import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const EVERY_FILE = '{agent,bench,bin,client,console,docs,events,lambdas,lib,local,policies,test,workflows}/**/*';
const glob = (...patterns: string[]) => globSync(patterns, { cwd: ROOT, exclude: ['**/node_modules/**'] });

// The changelog names files as they were.
const documents = glob('*.md', '{docs,events,policies,test}/**/*.md').filter((path) => path !== 'CHANGELOG.md');
const paths = new Set([...glob(EVERY_FILE), ...glob('*.*')]);
const names = new Set([...paths].map((path) => basename(path)));

const PATH = /(?<![\w./:<>*-])\w[\w.-]*(?:\/[\w.-]+)*\.(?:ts|mjs|md|ya?ml|json|cedar|cedarschema|html)(?![\w/])/g;
const LINK = /\]\((?!https?:)([^)#\s]+)\)/g;
/** Created by the reader, not part of the repository. */
const EXAMPLES =
  /^(cdk\.out|dist)\/|^openapi\.json$|^countersign(-agent)?\.mjs$|(^|[/-])(agent|identity|bundle|bundle\.dsse|keys|signing|cases|run|statement|completion|enrichment|values)\.(json|yaml|html)$/;

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** A path from the root or from the document's folder, or just the name of a file. */
function exists(document: string, path: string): boolean {
  if (!path.includes('/')) return names.has(path);
  return paths.has(path) || existsSync(join(ROOT, dirname(document), path));
}

describe.each(documents)('%s', (document) => {
  it('names only files that exist', () => {
    const named = [...textOf(document).matchAll(PATH)].map(([path]) => path).filter((path) => !EXAMPLES.test(path));
    expect(named.filter((path) => !exists(document, path))).toEqual([]);
  });

  it('links only to files that exist', () => {
    const linked = [...textOf(document).matchAll(LINK)].map(([, path = '']) => path);
    expect(linked.filter((path) => !existsSync(join(ROOT, dirname(document), path)))).toEqual([]);
  });
});

it('every reference to a heading of a document is right', () => {
  const headings = (document: string) => [...textOf(document).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading);
  const sources = [...glob('{bin,client,lambdas,lib,local,test}/**/*.ts'), ...documents];
  const wrong = sources.flatMap((path) =>
    [
      ...textOf(path).matchAll(
        /\b(RUNBOOK|ARCHITECTURE|CONTRIBUTING|docs\/administration)(?:\.md)?\)?,\s+(?:\*\s+)?"([^"]+)"/g,
      ),
    ]
      .filter(([, document, heading = '']) => !headings(`${document}.md`).includes(heading.replace(/\s+/g, ' ')))
      .map(([reference]) => `${path}: ${reference}`),
  );
  expect(wrong).toEqual([]);
});

it('docs/design/dependencies.md says why each dependency is there', () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(textOf('package.json'));
  const named = [...textOf('docs/design/dependencies.md').matchAll(/`([^`\s]+)`/g)].map(([, name = '']) => name);
  const isNamed = (name: string) =>
    named.some((each) => each === name || (each.endsWith('*') && name.startsWith(each.slice(0, -1))));
  const packages = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(packages.filter((name) => !isNamed(name))).toEqual([]);
});

describe('test/README.md, the invariants of source 004', () => {
  const INVARIANTS = Array.from({ length: 12 }, (_, place) => `6.${place + 1}`);
  const [, table = ''] = /^## Automations \(source 004\)$([\s\S]*?)^## /m.exec(textOf('test/README.md')) ?? [];
  const rows = new Map(
    [...table.matchAll(/^\| (6\.\d+) .*?\| (.*) \|$/gm)].map(([, invariant = '', tests = '']) => [invariant, tests]),
  );
  /** Names of tests and groups that begin with the number: `6.1` is not `6.11`. */
  const isNamed = (text: string, invariant: string) =>
    new RegExp(`(?:describe|it)\\(\\s*['\`](?:6\\.\\d+, )*${invariant.replace('.', '\\.')}(?!\\d)`).test(text);

  it.each(INVARIANTS)('%s has a row, and each file that it names has a test of this name', (invariant) => {
    const files = [...(rows.get(invariant) ?? '').matchAll(/`([\w/-]+\.test\.ts)`/g)].map(([, file = '']) => file);
    expect(files).not.toEqual([]);
    expect(files.filter((file) => !isNamed(textOf(`test/${file}`), invariant))).toEqual([]);
  });
});
