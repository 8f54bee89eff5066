import { createServer } from 'node:http';
import { AwsError } from '../aws/aws.ts';
import { errorReply, readRequest, send, type WireReply, type WireRequest } from '../aws/wire.ts';
import type { Fields } from '../cloud/request-fields.ts';
import { listenOnLoopback, refuseForeign } from '../host/loopback-requests.ts';
import { LocalDynamoDb } from './local-dynamodb.ts';
import { dynamoDbProxy } from './proxy.ts';

/** A request whose operation and input the AWS endpoint has read already. */
export interface DynamoDbRequest {
  request: WireRequest;
  operation: string;
  input: Fields;
}

export interface DynamoDb {
  /** For the host itself and for tests: without IAM, faults and counts. */
  url: string;
  serve(request: DynamoDbRequest): Promise<WireReply>;
  stop(): Promise<void>;
}

/** Opens the DynamoDB in this process, or uses the one that the environment names. */
export async function startDynamoDb(dataFolder: string, env: NodeJS.ProcessEnv = process.env): Promise<DynamoDb> {
  const { AWS_ENDPOINT_URL_DYNAMODB: other } = env;
  if (other) {
    const proxy = dynamoDbProxy(other);
    return { url: other, serve: ({ request }) => proxy.forward(request), stop: async () => proxy.stop() };
  }
  const engine = new LocalDynamoDb(dataFolder);
  const serve: DynamoDb['serve'] = async ({ request, operation, input }) => {
    const body = JSON.stringify(engine.execute(operation, input, request.text));
    return { status: 200, headers: { 'content-type': 'application/x-amz-json-1.0' }, body };
  };
  const server = createServer((request, response) => {
    if (refuseForeign(request, response)) return;
    readRequest(request)
      .then((wire) => serve(requestOf(wire)))
      .catch(failure)
      .then((reply) => send(response, reply));
  });
  const { url, stop } = await listenOnLoopback(server);
  return { url, serve, stop: () => stop().then(() => engine.close()) };
}

function requestOf(request: WireRequest): DynamoDbRequest {
  const operation = /\.(\w+)$/.exec(request.headers['x-amz-target'] ?? '')?.[1] ?? '';
  return { request, operation, input: JSON.parse(request.body.toString('utf8') || '{}') as Fields };
}

function failure(error: unknown): WireReply {
  const { code, message, httpStatus, details } =
    error instanceof AwsError ? error : new AwsError('InternalServerError', String(error), 500);
  return errorReply({ service: 'dynamodb', code, message, status: httpStatus, ...(details && { details }) });
}
