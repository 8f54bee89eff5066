import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { FILES, withTables } from './generated-tables.ts';
import { jsonSchemas } from './json-schemas.ts';
import { referencePages } from './reference-pages.ts';

const ROOT = new URL('../', import.meta.url);

/** Everything that `npm run docs` writes, by path. A test fails if a file is out of date. */
export async function generatedFiles(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const file of FILES)
    files.set(file.pathname.slice(ROOT.pathname.length), withTables(readFileSync(file, 'utf8')));
  for (const [name, text] of Object.entries(await referencePages())) files.set(`docs/reference/${name}`, text);
  for (const [name, schema] of Object.entries(jsonSchemas()))
    files.set(`schemas/${name}`, `${JSON.stringify(schema, null, 2)}\n`);
  return files;
}

if (import.meta.main) {
  for (const folder of ['docs/reference', 'schemas']) mkdirSync(new URL(folder, ROOT), { recursive: true });
  for (const [path, text] of await generatedFiles()) writeFileSync(new URL(path, ROOT), text);
}
