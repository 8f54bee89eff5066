import { describe, expect, it } from 'vitest';
import { type SourceFile, sourceFiles } from './source.ts';

const lambdas = sourceFiles('lambdas/**/*.ts');
const lib = sourceFiles('lib/**/*.ts', 'bin/app.ts');

/** A file that talks to a technology says so in its name. */
const NAMED_FOR_TECHNOLOGY =
  /(^|\/)((dynamo|sqs|s3|sfn|kms|secrets|aws)-[^/]+|[^/]+\.lambda|[^/]+-ports|[^/]+\.wiring)\.ts$/;

/** The folders in order: each imports values only from folders above it in this list, or of the same line. */
const FLOORS = [
  ['entry'],
  ['outbox'],
  ['run'],
  ['evidence'],
  ['connectors'],
  ['policy', 'workflow'],
  ['people'],
  ['pipeline'],
  ['proposal'],
  ['run-changes'],
  ['approval'],
  ['worker'],
  ['plan'],
  ['sweep'],
  ['intake'],
  ['slack'],
  ['api'],
];
/** Entry points and what builds their ports join everything. */
const PUTS_TOGETHER = /(\.lambda|-ports|\.wiring)\.ts$/;

const isOurs = (path: string): boolean => path.startsWith('lambdas/');
const folderOf = (path: string): string => path.split('/')[1] ?? '';

const offences = (files: SourceFile[], isWrong: (file: SourceFile, from: string) => boolean): string[] =>
  files.flatMap((file) =>
    file.imports.filter(({ from }) => isWrong(file, from)).map(({ from }) => `${file.path} imports ${from}`),
  );

/** Everything that is loaded with these files; types are not. */
function reachedFrom(files: readonly SourceFile[], reached = new Set<string>()): Set<string> {
  for (const { imports } of files) {
    const news = imports.filter(({ from, typesOnly }) => !typesOnly && !reached.has(from)).map(({ from }) => from);
    for (const from of news) reached.add(from);
    reachedFrom(
      lambdas.filter(({ path }) => news.includes(path)),
      reached,
    );
  }
  return reached;
}

describe('imports go one way', () => {
  it('and are found at all', () => {
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

  it('of what runs, folders take values from below only; types are shared', () => {
    const floorOf = (path: string): number => FLOORS.findIndex((each) => each.includes(folderOf(path)));
    expect(new Set(lambdas.map(({ path }) => folderOf(path)))).toEqual(new Set(FLOORS.flat()));
    const useCases = lambdas.filter(({ path }) => !PUTS_TOGETHER.test(path));
    const values = useCases.map((file) => ({ ...file, imports: file.imports.filter(({ typesOnly }) => !typesOnly) }));
    expect(offences(values, ({ path }, from) => isOurs(from) && floorOf(from) > floorOf(path))).toEqual([]);
  });

  it('only files named for a technology import an AWS client', () => {
    expect(
      offences(lambdas, ({ path }, from) => from.startsWith('@aws-sdk/') && !NAMED_FOR_TECHNOLOGY.test(path)),
    ).toEqual([]);
  });

  it('nothing but an entry point, or what builds its ports, imports an adapter', () => {
    const ADAPTER = /(^|\/)(dynamo|sqs|s3|sfn|kms|secrets|aws)-[^/]+\.ts$/;
    expect(offences(lambdas, ({ path }, from) => ADAPTER.test(from) && !NAMED_FOR_TECHNOLOGY.test(path))).toEqual([]);
  });

  it('what verifies evidence needs no AWS, however far its imports are followed', () => {
    const reached = reachedFrom(lambdas.filter(({ path }) => path.startsWith('lambdas/evidence/verify/')));
    expect([...reached]).toEqual(expect.arrayContaining(['zod', 'lambdas/evidence/bundle/document.ts']));
    expect([...reached].filter((from) => /aws|smithy/i.test(from))).toEqual([]);
  });

  it('nothing imports an entry point', () => {
    expect(offences([...lambdas, ...lib], (_file, from) => from.endsWith('.lambda.ts'))).toEqual([]);
  });

  it('what runs knows nothing of what deploys, hosts or tests it', () => {
    const outside = /^(aws-cdk-lib|constructs|cdk-nag|esbuild)(\/|$)|^(lib|local|test|bin)\//;
    expect(offences(lambdas, (_file, from) => outside.test(from))).toEqual([]);
  });

  it('what deploys knows of what runs only environments, names and bounds', () => {
    const allowed: Record<string, string[]> = {
      'lambdas/run/lease.ts': ['WORKER_TIMEOUT_MS'],
      'lambdas/run/dynamo/dynamo-keys.ts': ['INDEXES', 'RowKind', 'TTL_ATTRIBUTE'],
      'lambdas/api/routes.ts': ['API_ROUTES'],
      'lambdas/entry/metrics.ts': ['METRICS', 'MetricName', 'metricNamespace'],
      'lambdas/run/run.ts': ['TERMINAL_STATUSES'],
      'lambdas/entry/tenant-secrets.ts': ['SecretPurpose', 'secretName'],
      'lambdas/run/approval.ts': ['APPROVAL_EXPIRES_AFTER_MS'],
    };
    const taken = lib.flatMap(({ path, imports }) =>
      imports
        .filter(({ from }) => from.startsWith('lambdas/') && !from.endsWith('/environment.ts'))
        .flatMap(({ from, names }) => names.map((name) => ({ path, from, name }))),
    );
    expect(taken.filter(({ from, name }) => !allowed[from]?.includes(name))).toEqual([]);
    expect(offences(lib, (_file, from) => /^(local|test)\//.test(from))).toEqual([]);
  });

  it('every relative import names a file with its ending', () => {
    const relative = sourceFiles('{lambdas,lib,local,bin,test,bench}/**/*.ts').flatMap(({ path, imports }) =>
      imports
        .filter(({ from }) => /^(lambdas|lib|local|bin|test|bench)\//.test(from) && !/\.(ts|mjs|json)$/.test(from))
        .map(({ from }) => `${path}: ${from}`),
    );
    expect(relative).toEqual([]);
  });
});
