import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Services } from '../../../local/aws/aws-calls.ts';
import { type Caller, HOST_CREDENTIALS, startAwsEndpoint } from '../../../local/aws/aws-endpoint.ts';
import { Faults } from '../../../local/aws/faults.ts';
import type { SimulatorsAt } from '../../../local/aws/passed-requests.ts';
import { RequestCounts } from '../../../local/aws/request-counts.ts';
import { startDynamoDb } from '../../../local/dynamodb/dynamodb.ts';
import { createTables } from '../../../local/dynamodb/tables.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { freePort } from '../../../local/host/free-port.ts';
import { Iam } from '../../../local/iam/iam.ts';
import { Functions } from '../../../local/lambda/functions.ts';
import { type CloudFormationTemplate, resolveTemplate } from '../../../local/template/template.ts';

export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));

/** Bundles leave no bare imports; a handler written here finds the SDK through this. */
export const SDK = (name: string) =>
  `(await import('node:module')).createRequire(${JSON.stringify(`${REPOSITORY}package.json`)})('@aws-sdk/${name}')`;

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'countersign-core-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Writes the index.mjs of each function. Returns the folder of a function. */
function writeHandlers(folder: string, handlers: Record<string, string>): (logicalId: string) => string {
  const folderOf = (logicalId: string) => join(folder, 'code', logicalId);
  for (const [logicalId, source] of Object.entries(handlers)) {
    mkdirSync(folderOf(logicalId), { recursive: true });
    writeFileSync(join(folderOf(logicalId), 'index.mjs'), source);
  }
  return folderOf;
}

export interface SmallHostOptions {
  template: CloudFormationTemplate;
  handlers?: Record<string, string>;
  services?: Partial<Services>;
  simulators?: SimulatorsAt;
  concurrency?: number;
  withDynamoDb?: boolean;
}

/** The core of the host, without the services that have tests of their own. */
export async function startSmallHost(options: SmallHostOptions) {
  const folder = temporaryFolder();
  const dynamodb = options.withDynamoDb === false ? undefined : await startDynamoDb(folder.path, {});
  const port = await freePort();
  const awsEndpointUrl = `http://127.0.0.1:${port}`;
  const stack = resolveTemplate(options.template, { stackName: 'Test', awsEndpointUrl });
  if (dynamodb) await createTables(dynamodb.url, stack);
  const callers = new Map<string, Caller>();
  const lines: string[] = [];
  const [iam, requests, faults, clock] = [
    new Iam(stack),
    new RequestCounts(),
    new Faults(),
    new HostClock(folder.path),
  ];
  const functions = new Functions({
    stack,
    clock,
    awsEndpointUrl,
    codeFolder: writeHandlers(folder.path, { ...emptyHandlers(options.template), ...options.handlers }),
    log: (functionLogicalId, line) => lines.push(`${functionLogicalId}: ${line}`),
    serveAws: (request, answer) => gateway.serve(request, answer),
    ...(options.simulators && { simulators: options.simulators }),
    registerCaller: (accessKeyId, caller) => callers.set(accessKeyId, caller),
    concurrencyOf: () => options.concurrency ?? 2,
  });
  const gateway = await startAwsEndpoint({
    port,
    stack,
    iam,
    requests,
    faults,
    dynamodb: dynamodb ?? { serve: () => Promise.reject(new Error('this host has no DynamoDB')) },
    services: { json: {}, rest: {}, streams: { observe: () => undefined }, ...options.services },
    callers,
    crash: (_functionLogicalId, accessKeyId) => functions.crash(accessKeyId),
    log: (line) => lines.push(line),
  });
  /** Client settings of a function, as if from its thread, or of the host. */
  const as = (functionLogicalId: string) => {
    const accessKeyId = functionLogicalId === 'host' ? HOST_CREDENTIALS.accessKeyId : `LOCAL${functionLogicalId}.test`;
    if (functionLogicalId !== 'host')
      callers.set(accessKeyId, { functionLogicalId, roleLogicalId: `${functionLogicalId}Role` });
    const credentials = { accessKeyId, secretAccessKey: 'local' };
    return { endpoint: gateway.url, region: 'us-east-1', credentials, maxAttempts: 1 };
  };
  return {
    stack,
    iam,
    requests,
    faults,
    clock,
    functions,
    gateway,
    lines,
    as,
    dynamodbAs: (functionLogicalId: string) => new DynamoDBClient(as(functionLogicalId)),
    stop: async () => {
      await functions.stop();
      await gateway.stop();
      await dynamodb?.stop();
      clock.stop();
      folder.remove();
    },
  };
}

export type SmallHost = Awaited<ReturnType<typeof startSmallHost>>;

function emptyHandlers(template: CloudFormationTemplate): Record<string, string> {
  const functions = Object.entries(template.Resources ?? {}).filter(([, { Type }]) => Type === 'AWS::Lambda::Function');
  return Object.fromEntries(functions.map(([logicalId]) => [logicalId, 'export const handler = async () => null;']));
}
