import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';
import type { ProblemCode } from '../run/errors.ts';
import { SIGNED_BODY_MAX_BYTES } from './body-limits.ts';
import { readEnvironment } from './environment.ts';
import { functionHandler } from './middy-handler.ts';
import { atOwnDomain, OwnDomainEnvironment, refusalOfDirectRequest } from './own-domain.ts';
import { JsonError, parseJson } from './parse-json.ts';
import { systemLog } from './system.ts';

export type HttpEvent = Omit<APIGatewayProxyEventV2, 'requestContext'> & {
  requestContext: APIGatewayProxyEventV2['requestContext'] & { authorizer?: { lambda?: Record<string, unknown> } };
};
export type HttpResponse = APIGatewayProxyStructuredResultV2;

/** An error for the caller: HTTP status, error code, and a sentence that says what is wrong and what to do. */
export class Problem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  /** Further fields of the body, for programs. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    status: number,
    code: ProblemCode,
    detail: string,
    fields: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.fields = fields;
    this.headers = headers;
  }
}

/** A request was executed, but its response does not match the contract: a row was edited by hand, or there is a bug. */
export class InvalidResponse extends Error {
  override name = 'InvalidResponse';
}

/** The body as it was sent. Signatures cover these bytes; a re-serialised body would have other bytes. */
export function rawBody(event: Pick<HttpEvent, 'body' | 'isBase64Encoded'>): Buffer {
  return Buffer.from(event.body ?? '', event.isBase64Encoded ? 'base64' : 'utf8');
}

/** As `rawBody`, or throws a 413. The body is not trusted yet: its size is checked before its signature. */
export function signedBody(event: Pick<HttpEvent, 'body' | 'isBase64Encoded'>): Buffer {
  const body = rawBody(event);
  if (body.length <= SIGNED_BODY_MAX_BYTES) return body;
  throw new Problem(
    413,
    'TOO_LARGE',
    `the body has ${body.length} bytes; at most ${SIGNED_BODY_MAX_BYTES} are accepted`,
  );
}

/** Parses the JSON text of a request body, or throws a 400. */
export function parseJsonBody(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonError) throw new Problem(400, 'BAD_REQUEST', `the body ${error.message}`);
    throw error;
  }
}

/** For responses with data of a tenant: browsers neither store nor reinterpret them. */
export const PRIVATE = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

export function json(status: number, body: unknown): HttpResponse {
  return { statusCode: status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** Makes a Lambda handler. A `Problem` becomes `application/problem+json`, any other error a 500 without details. */
export function httpHandler(handle: (event: HttpEvent, context: Context) => Promise<HttpResponse>) {
  const ownDomain = readEnvironment(OwnDomainEnvironment);
  return functionHandler<HttpEvent, HttpResponse>()
    .use({
      onError: (request) => {
        request.response = problemResponse(request.error, request.event);
      },
    })
    .handler(async (event, context) => {
      const refusal = refusalOfDirectRequest(ownDomain, event.headers);
      if (refusal) throw new Problem(403, 'FORBIDDEN', refusal);
      return handle(atOwnDomain(ownDomain, event), context);
    });
}

function problemResponse(error: unknown, event: HttpEvent): HttpResponse {
  const problem = error instanceof Problem ? error : unexpected(error, event);
  return {
    statusCode: problem.status,
    headers: { 'content-type': 'application/problem+json', ...PRIVATE, ...problem.headers },
    body: JSON.stringify({
      type: `urn:countersign:${problem.code.toLowerCase().replaceAll('_', '-')}`,
      title: TITLES[problem.status] ?? 'Error',
      status: problem.status,
      code: problem.code,
      detail: problem.message,
      ...problem.fields,
    }),
  };
}

function unexpected(error: unknown, event: HttpEvent): Problem {
  const requestId = event.requestContext.requestId;
  systemLog.error('an unexpected error', { error, requestId });
  const isExecuted = error instanceof InvalidResponse && event.requestContext.http.method !== 'GET';
  const detail = isExecuted
    ? 'the request was executed, but its response could not be sent; check the result before you repeat it, and report'
    : 'an internal error occurred; try again, or report';
  return new Problem(500, 'INTERNAL', `${detail} request ${requestId}`);
}

const TITLES: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  413: 'Content Too Large',
  429: 'Too Many Requests',
  416: 'Range Not Satisfiable',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
};
