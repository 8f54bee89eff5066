/** The AWS wire protocols in front of services under test, so that the real SDK is what they are judged by. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AwsError, type JsonService } from '../../../local/aws/aws.ts';
import { errorReply } from '../../../local/aws/wire.ts';
import { decodeAwsChunked, type LocalS3, s3Operation } from '../../../local/cloud/s3/s3.ts';

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

/** `json` maps the prefix of `x-amz-target` (AmazonSQS, AWSStepFunctions, secretsmanager, TrentService) to its service. */
export async function openWire(services: { json?: Record<string, JsonService>; s3?: LocalS3 }): Promise<Wire> {
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
  services: { json?: Record<string, JsonService>; s3?: LocalS3 },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const target = request.headers['x-amz-target'];
  if (typeof target === 'string') return answerJson(services.json ?? {}, target, body, response);
  if (services.s3 === undefined) throw new Error('no S3 behind this wire');
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const [path = '/', search] = (request.url ?? '/').split('?', 2);
  const query = new URLSearchParams(search);
  const named = s3Operation(request.method ?? 'GET', path, query, headers);
  const result = await services.s3.handle({
    ...named,
    query,
    headers,
    body: decodeAwsChunked(body, headers),
  });
  response.writeHead(result.status, result.headers).end(result.body);
}

async function answerJson(
  services: Record<string, JsonService>,
  target: string,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  const [prefix = '', operation = ''] = target.split('.');
  const type = { 'content-type': 'application/x-amz-json-1.0' };
  try {
    const service = services[prefix];
    if (service === undefined) throw new Error(`no service ${prefix} behind this wire`);
    const result = await service.call(operation, JSON.parse(body.toString() || '{}'));
    response.writeHead(200, type).end(JSON.stringify(result));
  } catch (error) {
    if (!(error instanceof AwsError)) throw error;
    const { code, message, httpStatus } = error;
    const service = prefix === 'AmazonSQS' ? 'sqs' : '';
    const { status, headers, body: content } = errorReply({ service, code, message, status: httpStatus });
    response.writeHead(status, headers).end(content);
  }
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'countersign-services-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Only ever reached by a test that fails. */
const GIVE_UP_AFTER_MS = 60_000;

/** Resolves as soon as `condition` holds, looking again after each turn of the event loop; never by waiting a fixed time. */
export async function until(condition: () => boolean | Promise<boolean>, whatFor: string): Promise<void> {
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAtMs) throw new Error(`never happened: ${whatFor}`);
    await new Promise((turn) => setImmediate(turn));
  }
}
