import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'esbuild';
import { openApiDocument } from '../../lib/api/openapi/openapi-document.ts';
import { buildOf, filesBeside } from '../../lib/bundle-functions.ts';
import { packageVersion } from '../version.ts';
import { FILES_COMMENT } from './embedded-files.ts';
import { bomOf } from './sbom.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Some dependencies are CommonJS and call `require`. */
const FIRST_LINES = [
  "import { createRequire as __createRequire } from 'node:module';",
  'const BUNDLE_URL = import.meta.url;',
  'const require = __createRequire(BUNDLE_URL);',
].join('\n');

/** Each is one file. Hosts that only run an agent need no more than the second. */
const PROGRAMS = ['countersign', 'countersign-agent'] as const;

/** `npm run build`: the command line in one file, and the agent in another one. */
export async function buildCli(outputFolder: string): Promise<void> {
  for (const name of PROGRAMS) await buildProgram(name, outputFolder);
  writeFileSync(join(outputFolder, 'openapi.json'), `${JSON.stringify(openApiDocument(), null, 2)}\n`);
}

/**
 * A program needs nothing but Node.js 20 or newer. The same sources give the same bytes in any folder: no time, no path and
 * no random value is part of them.
 */
export async function buildProgram(name: (typeof PROGRAMS)[number], outputFolder: string): Promise<void> {
  mkdirSync(outputFolder, { recursive: true });
  const { outputFiles, metafile } = await build({
    entryPoints: [join(ROOT, 'bin', `${name}.ts`)],
    outfile: `${name}.mjs`,
    inject: ['node-20.ts', 'embedded-files.ts'].map((file) => join(ROOT, 'bin', 'build', file)),
    define: {
      COUNTERSIGN_BUILD: JSON.stringify(buildOf(ROOT)),
      COUNTERSIGN_VERSION: JSON.stringify(packageVersion()),
      'import.meta.url': 'EMBEDDED_FILES.url',
      'import.meta.dirname': 'EMBEDDED_FILES.dirname',
    },
    banner: { js: FIRST_LINES },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    mainFields: ['module', 'main'],
    minify: true,
    // Error handling uses the names of classes.
    keepNames: true,
    legalComments: 'inline',
    charset: 'utf8',
    absWorkingDir: ROOT,
    // Names in the program depend on the paths of its sources, which must not leave the folder.
    preserveSymlinks: true,
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  const [program] = outputFiles;
  if (!program) throw new Error('esbuild made no file');
  const sources = Object.keys(metafile.inputs);
  const embedded = filesBeside(sources);
  const bytes = Buffer.concat([program.contents, Buffer.from(`${FILES_COMMENT}${packed(embedded)}\n`)]);
  const lockfile = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const files = [...sources, ...embedded.flatMap(({ path, sources: own }) => [path, ...own])];
  const bom = bomOf({ name, version: packageVersion(), bytes, files, lockfile });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const write = (file: string, content: string | Uint8Array) => writeFileSync(join(outputFolder, file), content);
  write(`${name}.mjs`, bytes);
  chmodSync(join(outputFolder, `${name}.mjs`), 0o755);
  write(`${name}.mjs.sha256`, `${sha256}  ${name}.mjs\n`);
  write(`${name}.cdx.json`, `${JSON.stringify(bom, null, 2)}\n`);
}

function packed(files: ReturnType<typeof filesBeside>): string {
  const contents = files.map(({ path, contents }) => [path, Buffer.from(contents).toString('base64')]);
  const json = JSON.stringify(Object.fromEntries(contents));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  return brotliCompressSync(json, { params }).toString('base64');
}

if (import.meta.main) {
  const folder = process.argv[2] ?? join(ROOT, 'dist');
  await buildCli(folder);
  console.log(
    `${folder}: ${PROGRAMS.map((name) => `${name}.mjs`).join(', ')}, each with .sha256 and .cdx.json; openapi.json`,
  );
}
