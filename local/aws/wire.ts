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
}

/** Protects the memory of the host. S3 itself accepts 5 GB in one put. */
const LARGEST_REQUEST_BYTES = 256 * 1024 * 1024;

export async function readRequest(request: IncomingMessage): Promise<WireRequest> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LARGEST_REQUEST_BYTES) throw new Error(`the request has more than ${LARGEST_REQUEST_BYTES} bytes`);
    chunks.push(chunk);
  }
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
    body: Buffer.concat(chunks),
  };
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
