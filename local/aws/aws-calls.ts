import { isFields } from '../cloud/request-fields.ts';
import type { DynamoDb } from '../dynamodb/dynamodb.ts';
import type { TableStreams } from '../dynamodb/table-stream.ts';
import { type AccessCheck, accessChecks } from '../iam/access-checks.ts';
import { TRACE_HEADER } from '../lambda/recursion.ts';
import type { ResolvedStack } from '../template/template.ts';
import { AwsError, type JsonService } from './aws.ts';
import { errorReply, type WireReply, type WireRequest } from './wire.ts';

/** A parsed call: its operation, the access it needs, and how to execute it. */
export interface AwsCall {
  service: string;
  operation: string;
  input: Record<string, unknown>;
  checks(): AccessCheck[];
  execute(): Promise<WireReply>;
}

/** A service whose operation is named by method and path instead of `x-amz-target`. */
export interface RestService {
  describe(request: WireRequest): { operation: string; checks: AccessCheck[] };
  handle(request: WireRequest): Promise<WireReply>;
}

/** The services by the name in the credential scope of a request: `sqs`, `states`, `s3`, … */
export interface Services {
  json: Record<string, JsonService>;
  rest: Record<string, RestService>;
  /** Learns every write that DynamoDB has executed. */
  streams: Pick<TableStreams, 'observe'>;
}

type Described = AwsCall | { refusal: WireReply };

export function describeCall(
  service: string,
  request: WireRequest,
  { stack, services, dynamodb }: { stack: ResolvedStack; services: Services; dynamodb: Pick<DynamoDb, 'serve'> },
): Described {
  const rest = services.rest[service];
  if (rest) return restCall(service, request, rest);
  const operation = /\.(\w+)$/.exec(request.headers['x-amz-target'] ?? '')?.[1];
  const jsonService = services.json[service];
  if (!operation || !(service === 'dynamodb' || jsonService)) return { refusal: unsupportedService(service, request) };
  const input = parseJson(request.text ?? request.body.toString('utf8'));
  if (!input) {
    const message = 'the request body is not a JSON object';
    return { refusal: errorReply({ service, code: 'SerializationException', message, status: 400 }) };
  }
  return {
    service,
    operation,
    input,
    checks: () => accessChecks(service, operation, input, stack),
    execute: async () => {
      if (!jsonService) {
        const reply = await dynamodb.serve({ request, operation, input });
        if (reply.status === 200) services.streams.observe(operation, input);
        return reply;
      }
      const contentType = request.headers['content-type'] ?? 'application/x-amz-json-1.0';
      const body = JSON.stringify(await jsonService.call(operation, input, request.headers[TRACE_HEADER]));
      return { status: 200, headers: { 'content-type': contentType }, body };
    },
  };
}

function restCall(service: string, request: WireRequest, rest: RestService): Described {
  try {
    const { operation, checks } = rest.describe(request);
    return { service, operation, input: {}, checks: () => checks, execute: () => rest.handle(request) };
  } catch (error) {
    if (!(error instanceof AwsError)) throw error;
    const { code, message, httpStatus: status } = error;
    return { refusal: errorReply({ service, code, message, status }) };
  }
}

function parseJson(text: string): Record<string, unknown> | undefined {
  if (text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function unsupportedService(service: string, { method, path, headers }: WireRequest): WireReply {
  const call = headers['x-amz-target'] ?? `${method} ${path}`;
  const message = `the local host does not support the service ${service} (${call})`;
  return errorReply({ service, code: 'UnknownOperationException', message, status: 400 });
}
