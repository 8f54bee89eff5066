import { assertKeySizes } from '../dynamodb/key-sizes.ts';
import { type AccessCheck, accessChecks, s3Checks } from '../iam/access-checks.ts';
import { TRACE_HEADER } from '../lambda/recursion.ts';
import type { ResolvedStack } from '../template/template.ts';
import { AwsError, type JsonService } from './aws.ts';
import { errorReply, type WireReply, type WireRequest } from './wire.ts';

/** One call, understood: what it is, what it needs to be granted, how to carry it out. */
export interface AwsCall {
  service: string;
  operation: string;
  input: Record<string, unknown>;
  checks(): AccessCheck[];
  execute(): Promise<WireReply>;
}

export interface S3Named {
  operation: string;
  bucket: string;
  key?: string;
}

export interface S3Front {
  /** `s3Operation` of cloud/s3.ts. */
  operation(method: string, path: string, query: URLSearchParams, headers: Record<string, string>): S3Named;
  /** `decodeAwsChunked` of cloud/s3.ts. */
  decode(body: Buffer, headers: Record<string, string>): Buffer;
  handle(
    request: S3Named & { query: URLSearchParams; headers: Record<string, string>; body: Buffer },
  ): Promise<WireReply>;
}

/** A service addressed by method and path instead of `x-amz-target`. */
export interface RestService {
  describe(request: WireRequest): { operation: string; checks: AccessCheck[] };
  handle(request: WireRequest): Promise<WireReply>;
}

export interface HostedServices {
  stack: ResolvedStack;
  services: Record<string, JsonService>;
  s3: S3Front;
  rest?: Record<string, RestService>;
}

type Described = AwsCall | { refusal: WireReply };

export function describeCall(
  service: string,
  request: WireRequest,
  hosted: HostedServices,
  forwardToDynamoDb: (request: WireRequest) => Promise<WireReply>,
): Described {
  if (service === 's3') return s3Call(request, hosted.s3);
  const rest = hosted.rest?.[service];
  if (rest) {
    const { operation, checks } = rest.describe(request);
    return { service, operation, input: {}, checks: () => checks, execute: () => rest.handle(request) };
  }
  const operation = /\.(\w+)$/.exec(request.headers['x-amz-target'] ?? '')?.[1];
  const jsonService = hosted.services[service];
  if (!operation || !(service === 'dynamodb' || jsonService)) return { refusal: notOffered(service, request) };
  const input = parseJson(request.body);
  if (!input) {
    const message = 'the request body is not a JSON object';
    return { refusal: errorReply({ service, code: 'SerializationException', message, status: 400 }) };
  }
  return {
    service,
    operation,
    input,
    checks: () => accessChecks(service, operation, input, hosted.stack),
    execute: async () => {
      if (!jsonService) {
        assertKeySizes(hosted.stack, input);
        return forwardToDynamoDb(request);
      }
      const contentType = request.headers['content-type'] ?? 'application/x-amz-json-1.0';
      const body = JSON.stringify(await jsonService.call(operation, input, request.headers[TRACE_HEADER]));
      return { status: 200, headers: { 'content-type': contentType }, body };
    },
  };
}

function s3Call({ method, path, query, headers, body }: WireRequest, s3: S3Front): Described {
  let request: Parameters<S3Front['handle']>[0];
  try {
    const decoded = s3.decode(body, headers);
    request = { ...s3.operation(method, path, query, headers), query, headers, body: decoded };
  } catch (error) {
    if (!(error instanceof AwsError)) throw error;
    const { code, message, httpStatus: status } = error;
    return { refusal: errorReply({ service: 's3', code, message, status }) };
  }
  return {
    service: 's3',
    operation: request.operation,
    input: {},
    checks: () => s3Checks(request),
    execute: () => s3.handle(request),
  };
}

function parseJson(body: Buffer): Record<string, unknown> | undefined {
  if (body.length === 0) return {};
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function notOffered(service: string, { method, path, headers }: WireRequest): WireReply {
  const asked = headers['x-amz-target'] ?? `${method} ${path}`;
  const message = `the local host does not offer the service ${service} (${asked})`;
  return errorReply({ service, code: 'UnknownOperationException', message, status: 400 });
}
