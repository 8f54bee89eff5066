import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { environmentOf, functionDefinitions } from '../local/lambda/function-definition.ts';
import type { ResolvedStack } from '../local/template/template.ts';
import { round } from './figures.ts';

const ROOT = join(import.meta.dirname, '..');
const TIMES = 9;

/** A function with nothing but a DynamoDB client, bundled as people usually do it. */
const BARE_HANDLER = `
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
const client = new DynamoDBClient();
export const handler = ({ pk }) => client.send(new GetItemCommand({ TableName: 'table', Key: { pk: { S: pk } } }));
`;

/** CPU time of the thread that imports, because it is comparable also on a busy machine. */
const MEASURED_IMPORT = `
const before = process.threadCpuUsage();
await import(process.env.BENCHED_BUNDLE);
const { user, system } = process.threadCpuUsage(before);
process.stdout.write(String((user + system) / 1000));
process.exit(0);
`;

export interface ColdStart {
  kilobytes: number;
  /** Median of nine imports in new processes. */
  importCpuMs: number;
  /** In units of the bare handler of the same run. */
  timesBare: number;
}

/** The import of each function's bundle beside that of a bare DynamoDB handler, in turns. */
export function coldStarts(stack: ResolvedStack, codeFolder: (logicalId: string) => string): Record<string, ColdStart> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bench-cold-'));
  try {
    const bare = { name: 'bare DynamoDB handler', file: bundledBare(folder), environment: AWS_VARIABLES };
    const functions = functionDefinitions(stack, codeFolder).map((definition) => ({
      name: definition.logicalId.replace(/[0-9A-F]{8}$/, ''),
      file: definition.handlerFile,
      environment: environmentOf(definition, { accessKeyId: 'bench', awsEndpointUrl: 'http://127.0.0.1:1' }),
    }));
    const all = [bare, ...functions];
    const times = all.map(() => [] as number[]);
    for (let time = 0; time < TIMES; time += 1) {
      for (const [index, { file, environment }] of all.entries()) times[index]?.push(importCpuMs(file, environment));
    }
    const medians = times.map(median);
    return Object.fromEntries(
      all.map(({ name, file }, index) => [
        name,
        {
          kilobytes: Math.round(statSync(file).size / 1024),
          importCpuMs: round(medians[index] ?? 0),
          timesBare: round((medians[index] ?? 0) / (medians[0] ?? 1)),
        },
      ]),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const AWS_VARIABLES = { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench' };

function bundledBare(folder: string): string {
  const entry = join(folder, 'bare.js');
  writeFileSync(entry, BARE_HANDLER);
  const file = join(folder, 'bare.mjs');
  buildSync({
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    minify: true,
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    nodePaths: [join(ROOT, 'node_modules')],
    logLevel: 'error',
  });
  return file;
}

function importCpuMs(file: string, environment: Record<string, string>): number {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', MEASURED_IMPORT], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...environment, BENCHED_BUNDLE: `file://${file}` },
  });
  if (status !== 0) throw new Error(`${file} cannot be imported: ${stderr}`);
  return Number(stdout);
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
