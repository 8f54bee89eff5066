import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import { ENGINE_ACCESS_KEY_ID } from './tables.ts';

interface DynamoDbProxy {
  forward(request: WireRequest): Promise<WireReply>;
  stop(): void;
}

const MAX_CONNECTIONS = 64;

/** DynamoDB Local has one database per access key, so all requests use the same key. IAM has been checked before. */
const AUTHORIZATION =
  `AWS4-HMAC-SHA256 Credential=${ENGINE_ACCESS_KEY_ID}/20260101/us-east-1/dynamodb/aws4_request, ` +
  'SignedHeaders=host;x-amz-date;x-amz-target, Signature=local';

/** Forwards requests to the engine over persistent connections. Bodies are unchanged, so that their x-amz-crc32 is right. */
export function dynamoDbProxy(url: string): DynamoDbProxy {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS });
  return {
    forward: ({ headers, body }) =>
      new Promise((resolve, reject) => {
        const forwarded = httpRequest(
          url,
          { agent, method: 'POST', headers: engineHeaders(headers, body) },
          (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', reject);
            response.on('end', () => {
              const status = response.statusCode ?? 500;
              resolve({ status, headers: replyHeaders(response.headers), body: Buffer.concat(chunks) });
            });
          },
        );
        forwarded.on('error', reject);
        forwarded.end(body);
      }),
    stop: () => agent.destroy(),
  };
}

function engineHeaders(headers: Record<string, string>, body: Buffer): Record<string, string> {
  return {
    'content-type': headers['content-type'] ?? 'application/x-amz-json-1.0',
    'content-length': String(body.length),
    'x-amz-target': headers['x-amz-target'] ?? '',
    'x-amz-date': headers['x-amz-date'] ?? '20260101T000000Z',
    authorization: AUTHORIZATION,
  };
}

function replyHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const forwarded = ['content-type', 'x-amzn-requestid', 'x-amz-crc32', 'x-amzn-errortype'];
  return Object.fromEntries(forwarded.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : [])));
}
