import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { type SourceFile, sourceFiles } from './source.ts';

const lambdas = sourceFiles('lambdas/**/*.ts');
const bin = sourceFiles('{bin,client}/**/*.ts');
const lib = sourceFiles('lib/**/*.ts', 'bin/app.ts');

/** Files that may import the SDK of a technology. */
const NAMED_FOR_TECHNOLOGY = /(^|\/)((dynamo|sqs|s3|sfn|kms|secrets|aws)-[^/]+|[^/]+\.lambda|[^/]+\.wiring)\.ts$/;

/** The folders in order: each imports values only from folders above it in this list, or of the same line. */
const LAYERS = [
  ['entry'],
  ['outbox'],
  ['run'],
  ['telemetry'],
  ['evidence'],
  ['agents'],
  ['connectors'],
  ['policy', 'workflow'],
  ['people'],
  ['pipeline'],
  ['proposal'],
  ['run-changes'],
  ['notify'],
  ['approval'],
  ['worker'],
  ['plan'],
  ['sweep'],
  ['intake'],
  ['schedules'],
  ['slack'],
  ['setup'],
  ['api', 'live'],
  ['console'],
];
/** The name of an imported package, also where a file of it is imported by its path. */
const PACKAGE =
  /^(?:(?:import|export|\}).* from|import) '(?:[./]+\/node_modules\/)?(?!node:)((?:@[\w.-]+\/)?[a-z][\w.-]*)(?:\/[^']*)?'/gm;
/** Entry points and their wiring may import everything. */
const WIRING = /(\.lambda|\.wiring)\.ts$/;

const isOurs = (path: string): boolean => path.startsWith('lambdas/');
const folderOf = (path: string): string => path.split('/')[1] ?? '';

const violations = (files: SourceFile[], isForbidden: (file: SourceFile, from: string) => boolean): string[] =>
  files.flatMap((file) =>
    file.imports.filter(({ from }) => isForbidden(file, from)).map(({ from }) => `${file.path} imports ${from}`),
  );

/** All files and packages that these files load, directly or not. Types are not loaded. */
function reachedFrom(files: readonly SourceFile[], reached = new Set<string>()): Set<string> {
  for (const { imports } of files) {
    const added = imports.filter(({ from, typesOnly }) => !typesOnly && !reached.has(from)).map(({ from }) => from);
    for (const from of added) reached.add(from);
    reachedFrom(
      [...lambdas, ...bin].filter(({ path }) => added.includes(path)),
      reached,
    );
  }
  return reached;
}

describe('imports', () => {
  it('are found by this test', () => {
    expect(lambdas.length).toBeGreaterThan(50);
    expect(lambdas.flatMap(({ imports }) => imports).length).toBeGreaterThan(200);
    const store = lambdas.find(({ path }) => path === 'lambdas/run/dynamo/dynamo-run-store.ts');
    expect(store?.imports.map(({ from }) => from)).toEqual(
      expect.arrayContaining([
        '@aws-sdk/client-dynamodb',
        'lambdas/run/dynamo/dynamo-keys.ts',
        'lambdas/run/run-store.ts',
      ]),
    );
  });

  it('folders of lambdas import values only from lower layers; types are shared', () => {
    const layerOf = (path: string): number => LAYERS.findIndex((each) => each.includes(folderOf(path)));
    expect(new Set(lambdas.map(({ path }) => folderOf(path)))).toEqual(new Set(LAYERS.flat()));
    const useCases = lambdas.filter(({ path }) => !WIRING.test(path));
    const values = useCases.map((file) => ({ ...file, imports: file.imports.filter(({ typesOnly }) => !typesOnly) }));
    expect(violations(values, ({ path }, from) => isOurs(from) && layerOf(from) > layerOf(path))).toEqual([]);
  });

  it('the engine imports nothing from higher layers, not even types', () => {
    const engine = ['proposal', 'run-changes', 'approval', 'worker'];
    const files = lambdas.filter(({ path }) => engine.includes(folderOf(path)) && !WIRING.test(path));
    const isHigher = ({ path }: SourceFile, from: string) =>
      isOurs(from) && engine.indexOf(folderOf(from)) > engine.indexOf(folderOf(path));
    expect(violations(files, isHigher)).toEqual([]);
  });

  it('only files named for a technology import an AWS client', () => {
    expect(
      violations(lambdas, ({ path }, from) => from.startsWith('@aws-sdk/') && !NAMED_FOR_TECHNOLOGY.test(path)),
    ).toEqual([]);
  });

  it('only entry points and wiring files import adapters', () => {
    const ADAPTER = /(^|\/)(dynamo|sqs|s3|sfn|kms|secrets|aws)-[^/]+\.ts$/;
    expect(violations(lambdas, ({ path }, from) => ADAPTER.test(from) && !NAMED_FOR_TECHNOLOGY.test(path))).toEqual([]);
  });

  it('the verifier of evidence does not load AWS SDKs, directly or indirectly', () => {
    const reached = reachedFrom(lambdas.filter(({ path }) => path.startsWith('lambdas/evidence/verify/')));
    expect([...reached]).toEqual(expect.arrayContaining(['zod', 'lambdas/evidence/bundle/document.ts']));
    expect([...reached].filter((from) => /aws|smithy/i.test(from))).toEqual([]);
  });

  it('a command loads no large package before it runs, so that each starts in a tenth of a second', () => {
    const commands = bin.find(({ path }) => path === 'bin/commands/commands.ts');
    const modules = [...(commands?.text.matchAll(/import\('\.\/([^']+)'\)/g) ?? [])].map(
      ([, path]) => `bin/commands/${path}`,
    );
    expect(modules.length).toBeGreaterThan(40);
    const first = ['bin/countersign.ts', 'bin/commands/command-line.ts', ...modules];
    const reached = reachedFrom(bin.filter(({ path }) => first.includes(path)));
    expect(reached).toContain('lambdas/entry/did-you-mean.ts');
    expect([...reached].filter((from) => !/^(node:|bin\/|client\/|lambdas\/)/.test(from))).toEqual(['canonicalize']);
  });

  it('nothing imports an entry point', () => {
    expect(violations([...lambdas, ...lib], (_file, from) => from.endsWith('.lambda.ts'))).toEqual([]);
  });

  it('lambdas import nothing that deploys, hosts or tests them', () => {
    const forbidden = /^(aws-cdk-lib|constructs|cdk-nag|esbuild)(\/|$)|^(lib|local|test|bin)\//;
    expect(violations(lambdas, (_file, from) => forbidden.test(from))).toEqual([]);
  });

  it('the agent loads the protocol and what it needs of the domain, and AWS clients only when a command needs one', () => {
    const allowed = /^(agent|lambdas\/(agents|entry)|lambdas\/evidence\/signing\/dsse\.ts)|^(node:|zod$)/;
    const files = sourceFiles('agent/**/*.ts');
    expect(files.length).toBeGreaterThan(20);
    expect(violations(files, (_file, from) => !allowed.test(from))).toEqual([]);
  });

  it('lib imports only environment schemas, names and bounds from lambdas', () => {
    const allowed: Record<string, string[]> = {
      'lambdas/run/lease.ts': ['WORKER_TIMEOUT_MS'],
      'lambdas/run/dynamo/dynamo-keys.ts': ['INDEXES', 'RowKind', 'TTL_ATTRIBUTE'],
      'lambdas/api/contract/index.ts': ['CONTRACT', 'FunctionGroup', 'routesOf'],
      'lambdas/api/contract/route.ts': ['RouteDefinition', 'routeKey', 'Routes'],
      'lambdas/api/contract/schemas.ts': ['PAGE_MAX', 'ProblemDetails'],
      'lambdas/people/rights.ts': ['may', 'ROLES'],
      'lambdas/telemetry/metrics.ts': ['METRICS', 'MetricDefinition', 'metricNamespace'],
      'lambdas/run/run.ts': ['TERMINAL_STATUSES'],
      'lambdas/run/settings/flags-schema.ts': ['Flags'],
      'lambdas/entry/tenant-secrets.ts': ['SecretPurpose', 'secretName'],
      'lambdas/run/approval.ts': ['APPROVAL_EXPIRES_AFTER_MS'],
      'lambdas/entry/oidc-issuer.ts': ['ISSUERS_MAX', 'OWN_URL', 'repeatedIssuer', 'StageIssuer'],
      'lambdas/entry/own-domain.ts': ['ORIGIN_HEADER', 'OwnDomain'],
      'lambdas/entry/did-you-mean.ts': ['didYouMean'],
    };
    const imported = lib.flatMap(({ path, imports }) =>
      imports
        .filter(({ from }) => from.startsWith('lambdas/') && !from.endsWith('/environment.ts'))
        .flatMap(({ from, names }) => names.map((name) => ({ path, from, name }))),
    );
    expect(imported.filter(({ from, name }) => !allowed[from]?.includes(name))).toEqual([]);
    expect(violations(lib, (_file, from) => /^(local|test)\//.test(from))).toEqual([]);
  });

  it('every package that is imported is declared in package.json', () => {
    const { dependencies, devDependencies, optionalDependencies } = packageJson;
    const declared = { ...dependencies, ...devDependencies, ...optionalDependencies };
    const files = sourceFiles('{agent,bench,bin,client,console,docs,lambdas,lib,local,test}/**/*.{ts,tsx,mjs}');
    const imported = files.flatMap(({ path, text }) =>
      [...text.matchAll(PACKAGE)].map(([, name = '']) => ({ path, name })),
    );
    expect(new Set(imported.map(({ name }) => name)).size).toBeGreaterThan(50);
    const isDeclared = (name: string) => name in declared || `@types/${name}` in declared;
    expect(imported.filter(({ name }) => !isDeclared(name))).toEqual([]);
  });

  it('every relative import has a file extension', () => {
    const relative = sourceFiles('{agent,lambdas,lib,local,bin,client,test,bench}/**/*.ts').flatMap(
      ({ path, imports }) =>
        imports
          .filter(
            ({ from }) =>
              /^(agent|lambdas|lib|local|bin|client|test|bench)\//.test(from) && !/\.(ts|mjs|json)$/.test(from),
          )
          .map(({ from }) => `${path}: ${from}`),
    );
    expect(relative).toEqual([]);
  });
});
