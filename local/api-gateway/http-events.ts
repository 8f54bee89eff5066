import type { IncomingMessage } from 'node:http';
import { ACCOUNT } from '../aws/aws.ts';
import type { HttpRoute, RouteMatch } from './http-routes.ts';

/** A request with its body, as the events need it. */
export interface HttpRequest {
  method: string;
  path: string;
  rawQueryString: string;
  protocol: string;
  sourceIp: string;
  /** Names in lower case, repeated headers joined with commas, without cookies. */
  headers: Record<string, string>;
  cookies: string[];
  body: Buffer;
  requestId: string;
  timeEpochMs: number;
}

export interface HttpReply {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}

export function httpRequest(
  request: IncomingMessage,
  body: Buffer,
  { requestId, timeEpochMs }: { requestId: string; timeEpochMs: number },
): HttpRequest {
  const [path = '/', ...query] = (request.url ?? '/').split('?');
  const { cookie, ...distinct } = request.headersDistinct;
  const headers = Object.fromEntries(
    Object.entries(distinct).map(([name, values]) => [name, (values ?? []).join(',')]),
  );
  const sourceIp = (request.socket.remoteAddress ?? '127.0.0.1').replace(/^::ffff:/, '');
  return {
    method: request.method ?? 'GET',
    path,
    rawQueryString: query.join('?'),
    protocol: `HTTP/${request.httpVersion}`,
    sourceIp,
    headers: {
      ...headers,
      'x-forwarded-for': [headers['x-forwarded-for'], sourceIp].filter(Boolean).join(', '),
      'x-forwarded-port': String(request.socket.localPort ?? ''),
      'x-forwarded-proto': 'http',
    },
    cookies: (cookie ?? []).flatMap((line) => line.split(/;\s*/)),
    body,
    requestId,
    timeEpochMs,
  };
}

/** The event of payload format 2.0. */
export function proxyEvent(request: HttpRequest, match: RouteMatch, authorizer?: Record<string, unknown>) {
  const text = isText(request.headers['content-type']);
  return {
    version: '2.0',
    ...commonEvent(request, match),
    requestContext: {
      ...requestContext(request, match.route),
      ...(authorizer ? { authorizer: { lambda: authorizer } } : {}),
    },
    ...(request.body.length > 0 ? { body: request.body.toString(text ? 'utf8' : 'base64') } : {}),
    isBase64Encoded: request.body.length > 0 && !text,
  };
}

/** The event of a Lambda authorizer with payload format 2.0. */
export function authorizerEvent(request: HttpRequest, match: RouteMatch, identitySource: string[], routeArn: string) {
  return {
    version: '2.0',
    type: 'REQUEST',
    routeArn,
    identitySource,
    ...commonEvent(request, match),
    requestContext: requestContext(request, match.route),
  };
}

function commonEvent(request: HttpRequest, { route, pathParameters }: RouteMatch) {
  const query = queryParameters(request.rawQueryString);
  return {
    routeKey: route.routeKey,
    rawPath: request.path,
    rawQueryString: request.rawQueryString,
    ...(request.cookies.length > 0 ? { cookies: request.cookies } : {}),
    headers: request.headers,
    ...(Object.keys(query).length > 0 ? { queryStringParameters: query } : {}),
    ...(Object.keys(pathParameters).length > 0 ? { pathParameters } : {}),
  };
}

function requestContext(request: HttpRequest, route: HttpRoute) {
  const domainName = request.headers.host ?? 'localhost';
  return {
    accountId: ACCOUNT,
    apiId: route.apiId,
    domainName,
    domainPrefix: domainName.split('.')[0] ?? '',
    http: {
      method: request.method,
      path: request.path,
      protocol: request.protocol,
      sourceIp: request.sourceIp,
      userAgent: request.headers['user-agent'] ?? '',
    },
    requestId: request.requestId,
    routeKey: route.routeKey,
    stage: '$default',
    time: commonLogTime(request.timeEpochMs),
    timeEpoch: request.timeEpochMs,
  };
}

/** This format joins repeated parameters with commas. */
function queryParameters(rawQueryString: string): Record<string, string> {
  const joined: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(rawQueryString)) {
    joined[name] = name in joined ? `${joined[name]},${value}` : value;
  }
  return joined;
}

/** HTTP APIs pass these types as text and all others, including forms, in base64. */
function isText(contentType: string | undefined): boolean {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  return /^text\/|^application\/(json|javascript|xml)$|^application\/.+\+(json|xml)$/.test(type);
}

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** `16/Nov/2026:01:40:00 +0000` */
function commonLogTime(epochMs: number): string {
  const [date = '', time = ''] = new Date(epochMs).toISOString().split(/[T.]/);
  const [year, month, day] = date.split('-');
  return `${day}/${MONTHS[Number(month) - 1]}/${year}:${time} +0000`;
}

class MalformedResponse extends Error {}

/** Converts the result of a function to a response, as API Gateway does. */
export function httpReply(result: unknown): HttpReply {
  const { statusCode, headers, body, isBase64Encoded } = (result ?? {}) as Record<string, unknown>;
  const status = Number(statusCode);
  if (!Number.isInteger(status) || status < 100 || status > 599) {
    throw new MalformedResponse(`the function returned statusCode ${String(statusCode)}`);
  }
  if (body !== undefined && body !== null && typeof body !== 'string') {
    throw new MalformedResponse('the function returned a body that is not a string');
  }
  const lowerCased = Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return {
    status,
    headers: { 'content-type': 'text/plain;charset=UTF-8', ...Object.fromEntries(lowerCased) },
    body: Buffer.from(body ?? '', isBase64Encoded === true ? 'base64' : 'utf8'),
  };
}

export function messageReply(status: number, message: string): HttpReply {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message }) };
}
