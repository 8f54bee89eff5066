/** The AWS wire protocols in front of services under test, so that tests use the real SDK. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AwsError, type JsonService } from '../../../local/aws/aws.ts';
import type { RestService } from '../../../local/aws/aws-calls.ts';
import { errorReply, readRequest, send, type WireReply, type WireRequest } from '../../../local/aws/wire.ts';

export interface Wire {
  /** The configuration of any SDK client that should talk to the services. */
  client: {
    endpoint: string;
    region: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
    maxAttempts: 1;
  };
  close(): Promise<void>;
}

type Rest = Pick<RestService, 'handle'>;

/** `json` maps the prefix of `x-amz-target` (AmazonSQS, AWSStepFunctions, secretsmanager, TrentService) to its service. */
export async function openWire(services: {
  json?: Record<string, JsonService>;
  s3?: Rest;
  lambda?: Rest;
}): Promise<Wire> {
  const server = createServer((request, response) => {
    answer(services, request, response).catch((error) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    client: {
      endpoint: `http://127.0.0.1:${port}`,
      region: 'us-east-1',
      credentials: { accessKeyId: 'AKIATEST', secretAccessKey: 'secret' },
      maxAttempts: 1,
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function answer(
  services: { json?: Record<string, JsonService>; s3?: Rest; lambda?: Rest },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const wire = await readRequest(request);
  const [prefix = '', operation = ''] = (wire.headers['x-amz-target'] ?? '').split('.');
  const service = { '': 's3', AmazonSQS: 'sqs' }[prefix] ?? '';
  const reply = await execute(services, prefix, operation, wire).catch((error: unknown) => {
    if (!(error instanceof AwsError)) throw error;
    return errorReply({ service, code: error.code, message: error.message, status: error.httpStatus });
  });
  send(response, reply);
}

async function execute(
  { json = {}, s3, lambda }: { json?: Record<string, JsonService>; s3?: Rest; lambda?: Rest },
  prefix: string,
  operation: string,
  wire: WireRequest,
): Promise<WireReply> {
  const rest = s3 ?? lambda;
  if (prefix === '' && rest) return rest.handle(wire);
  const service = json[prefix];
  if (service === undefined) throw new Error(`this wire has no service ${prefix || 'S3'}`);
  const result = await service.call(operation, JSON.parse(wire.body.toString() || '{}'));
  return {
    status: 200,
    headers: { 'content-type': 'application/x-amz-json-1.0' },
    body: JSON.stringify(result),
  };
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'countersign-services-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Only a test that fails waits this long. */
const GIVE_UP_AFTER_MS = 60_000;

/** Resolves as soon as `condition` is true. Checks it after each turn of the event loop, without a fixed pause. */
export async function until(condition: () => boolean | Promise<boolean>, whatFor: string): Promise<void> {
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAtMs) throw new Error(`never happened: ${whatFor}`);
    await new Promise((turn) => setImmediate(turn));
  }
}
