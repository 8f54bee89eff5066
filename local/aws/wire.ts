import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The parts of the AWS wire protocols that the SDK uses. */

export interface WireReply {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}

export interface WireRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  /** Lower-case names. */
  headers: Record<string, string>;
  body: Buffer;
  /** The body, if it arrived as a text. */
  text?: string | undefined;
}

/** Protects the memory of the host. S3 itself accepts 5 GB in one put. */
const LARGEST_REQUEST_BYTES = 256 * 1024 * 1024;

export async function readRequest(request: IncomingMessage): Promise<WireRequest> {
  const body = await readBody(request);
  const [path = '/', queryText = ''] = splitOnce(request.url ?? '/', '?');
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(',') : (value ?? ''),
    ]),
  );
  return {
    method: request.method ?? 'GET',
    path,
    query: new URLSearchParams(queryText),
    headers,
    body,
  };
}

/** With events: an async iterator costs more than the rest of a small request. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > LARGEST_REQUEST_BYTES) {
        request.destroy(new Error(`the request has more than ${LARGEST_REQUEST_BYTES} bytes`));
      }
    });
    request.once('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(new Error('the connection closed before the end of the request')));
  });
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

export interface Credential {
  accessKeyId: string;
  service: string;
}

/** The signer and the service: `Credential=AKID/date/region/service/aws4_request`. */
export function credentialOf({ headers }: WireRequest): Credential | undefined {
  const scope = /Credential=([^,\s]+)/.exec(headers.authorization ?? '')?.[1];
  const [accessKeyId, , , service] = (scope ?? '').split('/');
  return accessKeyId && service ? { accessKeyId, service } : undefined;
}

export function send(response: ServerResponse, reply: WireReply): void {
  response.writeHead(reply.status, {
    'x-amzn-requestid': randomUUID(),
    'content-length': String(Buffer.byteLength(reply.body)),
    ...reply.headers,
  });
  response.end(reply.body);
}

interface ErrorShape {
  service: string;
  code: string;
  message: string;
  status: number;
  /** Further fields, such as the reasons of a cancelled transaction. */
  details?: Record<string, unknown>;
}

export function errorReply(error: ErrorShape): WireReply {
  return error.service === 's3' ? xmlError(error) : jsonError(error);
}

/** Namespaces of the error types. */
const ERROR_NAMESPACE: Record<string, string> = {
  dynamodb: 'com.amazonaws.dynamodb.v20120810#',
  sqs: 'com.amazonaws.sqs#',
};

/** SQS errors whose name in the older query protocol differs. Clients may use either name. */
const SQS_QUERY_CODES: Record<string, string> = {
  QueueDoesNotExist: 'AWS.SimpleQueueService.NonExistentQueue',
  EmptyBatchRequest: 'AWS.SimpleQueueService.EmptyBatchRequest',
  BatchEntryIdsNotDistinct: 'AWS.SimpleQueueService.BatchEntryIdsNotDistinct',
  TooManyEntriesInBatchRequest: 'AWS.SimpleQueueService.TooManyEntriesInBatchRequest',
  BatchRequestTooLong: 'AWS.SimpleQueueService.BatchRequestTooLong',
  InvalidBatchEntryId: 'AWS.SimpleQueueService.InvalidBatchEntryId',
  MessageNotInflight: 'AWS.SimpleQueueService.MessageNotInflight',
  UnsupportedOperation: 'AWS.SimpleQueueService.UnsupportedOperation',
};

function jsonError({ service, code, message, status, details }: ErrorShape): WireReply {
  const headers: Record<string, string> = { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-errortype': code };
  if (service === 'sqs') {
    headers['x-amzn-query-error'] = `${SQS_QUERY_CODES[code] ?? code};${status < 500 ? 'Sender' : 'Receiver'}`;
  }
  const type = `${ERROR_NAMESPACE[service] ?? ''}${code}`;
  return { status, headers, body: JSON.stringify({ __type: type, message, ...details }) };
}

function xmlError({ code, message, status }: ErrorShape): WireReply {
  const escaped = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return {
    status,
    headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${escaped}</Message></Error>`,
  };
}
