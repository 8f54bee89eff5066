import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type BuildOptions, buildSync, type Metafile } from 'esbuild';
import { openApiDocument } from './api/openapi/openapi-document.ts';
import { buildIfChanged } from './build-if-changed.ts';
import { withPureSchemas } from './pure-schemas.ts';

const ROOT = join(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'lambdas');
/** Copies of the sources, with their schemas marked for esbuild. */
const MARKED = join(ROOT, '.build', 'sources');

/** Some dependencies are CommonJS and call `require`, which ES modules do not have. */
const REQUIRE_FOR_COMMONJS =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

/**
 * Files that a source file reads or loads at run time, as patterns. They are copied, under the same paths, beside each
 * bundle that contains the source and beside no other, because policy engines slow down the start of a function.
 */
const NEEDED_AT_RUN_TIME: Record<string, readonly string[]> = {
  'lambdas/entry/bundle-replacements/lazy-jsonata.ts': ['node_modules/jsonata/{package.json,jsonata.js}'],
  'lambdas/policy/cedar-runtime.ts': ['node_modules/@cedar-policy/cedar-wasm/{,nodejs/}{package.json,*.js,*.wasm}'],
  'lambdas/policy/opa-policies.ts': [
    'node_modules/@open-policy-agent/opa-wasm/{package.json,src/**/*.{js,cjs}}',
    'node_modules/@open-policy-agent/opa-wasm/node_modules/yaml/{package.json,index.js,dist/*.js}',
    'node_modules/sprintf-js/{package.json,src/sprintf.js}',
  ],
  'lambdas/api/docs/docs.lambda.ts': [
    'node_modules/swagger-ui-dist/{package.json,LICENSE,NOTICE,swagger-ui.css,swagger-ui-bundle.js}',
  ],
  'bin/commands/policy/test.ts': ['policies/tests/*.yaml'],
  'lambdas/policy/shipped-policies.ts': ['policies/{schema.cedarschema,default.cedar}'],
};

/** Files that are generated beside each bundle that contains the source. */
const GENERATED: Record<string, { file: string; contents: () => string }> = {
  'lambdas/api/docs/docs.lambda.ts': { file: 'openapi.json', contents: () => JSON.stringify(openApiDocument()) },
};

/** Programs that a source file starts as a process: one file beside each bundle that contains the source. */
const PROGRAMS: Record<string, { entry: string; file: string }> = {
  'lambdas/workflow/expressions/expression-process.ts': {
    entry: 'lambdas/workflow/expressions/evaluator.child.ts',
    file: 'evaluator.mjs',
  },
};

/** Modules that slow down a cold start, and the smaller files that replace them in bundles. Each file says why. */
export const FUNCTION_ALIASES: Record<string, string> = {
  'node:http': './lambdas/entry/bundle-replacements/node-http.ts',
  '@aws-sdk/credential-provider-node': './lambdas/entry/bundle-replacements/environment-credentials.ts',
  '@aws-sdk/core/client': './lambdas/entry/bundle-replacements/aws-sdk-plugins.ts',
  '@aws-sdk/middleware-endpoint-discovery': './lambdas/entry/bundle-replacements/no-endpoint-discovery.ts',
  '@smithy/signature-v4': './lambdas/entry/bundle-replacements/signature-v4.ts',
  '@aws-sdk/dynamodb-codec': './lambdas/entry/bundle-replacements/dynamodb-codec.ts',
  '@smithy/core/endpoints': './lambdas/entry/bundle-replacements/sdk-endpoints.ts',
  '@smithy/core/event-streams': './lambdas/entry/bundle-replacements/no-event-streams.ts',
  jsonata: './lambdas/entry/bundle-replacements/lazy-jsonata.ts',
};

/** The folder of an entry point's bundle: `intake/github` → the folder with its index.mjs. */
export type FunctionBundles = (entry: string) => string;

/** Bundles every `*.lambda.ts` in one call of esbuild: one minified ES module for each function. */
export function bundleFunctions(outputFolder = join(ROOT, '.build', 'functions')): FunctionBundles {
  const entries = globSync('**/*.lambda.ts', { cwd: SOURCE }).map((file) => file.replace(/\.lambda\.ts$/, ''));
  const entryPoints = Object.fromEntries(
    entries.map((entry) => [join(entry, 'index'), join(MARKED, 'lambdas', `${entry}.lambda.ts`)]),
  );
  copyMarkedSources();
  const outputs = buildIfChanged(
    settings(entryPoints, outputFolder),
    join(outputFolder, 'build-record.json'),
    replaceIfChanged,
  );
  const programs = bundledPrograms(outputFolder);
  for (const [path, output] of Object.entries(outputs)) placeBeside(join(MARKED, path), output, programs);
  return (entry) => {
    if (!entries.includes(entry)) {
      throw new Error(
        `${relative(ROOT, join(SOURCE, entry))}.lambda.ts does not exist; there are ${entries.join(', ')}`,
      );
    }
    return dirname(join(outputFolder, entry, 'index.mjs'));
  };
}

/** Packages are found under the same paths as from the sources. */
function copyMarkedSources(): void {
  for (const file of globSync(['lambdas/**/*.{ts,json}', 'package.json'], { cwd: ROOT })) {
    const source = readFileSync(join(ROOT, file));
    replaceIfChanged(join(MARKED, file), file.endsWith('.ts') ? Buffer.from(withPureSchemas(String(source))) : source);
  }
  const packages = join(MARKED, 'node_modules');
  if (!existsSync(packages)) symlinkSync(join(ROOT, 'node_modules'), packages);
}

/** A program is one file, so it contains JSONata. */
function bundled(entryPoints: Record<string, string>, outdir: string, target?: string) {
  const { jsonata: _, ...alias } = FUNCTION_ALIASES;
  return buildSync({ ...settings(entryPoints, outdir, target), alias, metafile: true, write: false });
}

function settings(entryPoints: Record<string, string>, outdir: string, target = 'node24') {
  return {
    entryPoints,
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target,
    format: 'esm',
    mainFields: ['module', 'main'],
    alias: FUNCTION_ALIASES,
    // In place of the global `fetch`.
    inject: ['lambdas/entry/bundle-replacements/node-fetch.ts'],
    // The SDK imports it in browsers only.
    external: ['bowser'],
    // Names stay readable in stack traces. With `minify` and `keepNames` instead, each import is a tenth slower: it names every function by a call.
    minifyWhitespace: true,
    minifySyntax: true,
    banner: { js: REQUIRE_FOR_COMMONJS },
    define: { COUNTERSIGN_BUILD: JSON.stringify(buildOf(ROOT)) },
    logLevel: 'warning',
    absWorkingDir: MARKED,
    preserveSymlinks: true,
  } satisfies BuildOptions;
}

/** The bundle of each program, by the source that starts it. */
function bundledPrograms(outdir: string): Map<string, Uint8Array> {
  return new Map(
    Object.entries(PROGRAMS).map(([source, { entry, file }]) => {
      const [output] = bundled({ [file.replace(/\.mjs$/, '')]: join(MARKED, entry) }, outdir).outputFiles;
      if (!output) throw new Error(`${entry} was not bundled`);
      return [source, output.contents];
    }),
  );
}

interface FileBeside {
  path: string;
  contents: Uint8Array;
  /** What a program was bundled from. */
  sources: string[];
}

/** The files that a bundle of these sources needs beside it, for any supported version of Node.js. */
export function filesBeside(sources: readonly string[]): FileBeside[] {
  copyMarkedSources();
  const files = Object.entries(NEEDED_AT_RUN_TIME)
    .filter(([source]) => sources.includes(source))
    .flatMap(([, patterns]) => globSync([...patterns], { cwd: ROOT }).sort())
    .map((path) => ({ path: path.replaceAll('\\', '/'), contents: readFileSync(join(ROOT, path)), sources: [] }));
  const programs = Object.entries(PROGRAMS)
    .filter(([source]) => sources.includes(source))
    .flatMap(([, { entry, file }]) => {
      const { outputFiles, metafile } = bundled({ [file.replace(/\.mjs$/, '')]: join(MARKED, entry) }, ROOT, 'node20');
      return outputFiles.map(({ contents }) => ({ path: file, contents, sources: Object.keys(metafile.inputs) }));
    });
  return [...files, ...programs];
}

/** All files that determine what functions do. */
const SOURCES = ['lambdas/**/*.ts', 'policies/*.{cedar,cedarschema}', 'package-lock.json'];
const BUILD_DIGITS = 16;

/** A build id from the contents of the sources. It does not depend on git or on where the sources are. */
export function buildOf(root: string): string {
  const hash = createHash('sha256');
  for (const file of globSync(SOURCES, { cwd: root }).sort()) {
    const content = createHash('sha256')
      .update(readFileSync(join(root, file)))
      .digest('hex');
    hash.update(`${file.replaceAll('\\', '/')} ${content}\n`);
  }
  return hash.digest('hex').slice(0, BUILD_DIGITS);
}

/** Also removes files that a bundle no longer needs, so that a deployment does not depend on earlier builds. */
function placeBeside(
  bundle: string,
  { inputs }: Metafile['outputs'][string],
  programs: ReadonlyMap<string, Uint8Array>,
): void {
  for (const [source, { file }] of Object.entries(PROGRAMS)) {
    const target = join(dirname(bundle), file);
    const contents = inputs[source] && programs.get(source);
    if (contents) replaceIfChanged(target, contents);
    else rmSync(target, { force: true });
  }
  for (const [source, { file, contents }] of Object.entries(GENERATED)) {
    if (inputs[source]) replaceIfChanged(join(dirname(bundle), file), Buffer.from(contents()));
  }
  for (const [source, patterns] of Object.entries(NEEDED_AT_RUN_TIME)) {
    for (const file of globSync([...patterns], { cwd: ROOT })) {
      const target = join(dirname(bundle), file);
      if (inputs[source]) replaceIfChanged(target, readFileSync(join(ROOT, file)));
      else rmSync(target, { force: true });
    }
  }
}

/** Replaces the file atomically, because another process may be reading the bundle. */
function replaceIfChanged(path: string, contents: Uint8Array): void {
  if (existsSync(path) && readFileSync(path).equals(contents)) return;
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, path);
}
