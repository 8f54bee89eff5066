import type { IncomingMessage, ServerResponse } from 'node:http';

/** A parsed request to a simulated system. */
export interface SimCall {
  readonly method: string;
  /** The path within the system, with its query, as `/_sim/calls` shows it. */
  readonly path: string;
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  /** Parsed JSON or form; null without a body; the raw text if it cannot be parsed. */
  readonly body: unknown;
  readonly bodyIsMalformed: boolean;
  header(name: string): string | undefined;
}

export interface SimResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. Undefined sends no body. */
  readonly body?: unknown;
}

/** How a response is sent. Faults lose or cut it. */
export type Delivery = 'whole' | 'lost' | 'truncated';

/** More than any of the real systems accepts. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

export class BadRequest extends Error {
  readonly status: number;
  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

/** A whole request, which came over a socket or from a function thread. */
export interface SimRequest {
  method: string;
  /** Path and query. */
  url: string;
  /** Lower-case names. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
}

export async function readRequest(request: IncomingMessage): Promise<SimRequest> {
  const { method = 'GET', url = '/', headers } = request;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new BadRequest(`the body exceeds ${MAX_BODY_BYTES} bytes`, 413);
    chunks.push(chunk);
  }
  return { method, url, headers, text: Buffer.concat(chunks).toString('utf8') };
}

/** `mount` is the part of the path before the system's own path. */
export function callOf({ method, url, headers, text }: SimRequest, mount: string): SimCall {
  const path = url.slice(mount.length) || '/';
  const [pathname = '/', ...query] = path.split('?');
  const header = (name: string) => {
    const value = headers[name.toLowerCase()];
    return Array.isArray(value) ? value[0] : value;
  };
  return {
    method,
    path,
    segments: decodeSegments(pathname),
    query: new URLSearchParams(query.join('?')),
    ...parseBody(text, header('content-type') ?? ''),
    header,
  };
}

/** Splits before it decodes: the label `area/api` arrives as `area%2Fapi` and is one segment. */
function decodeSegments(pathname: string): string[] {
  try {
    return pathname.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    throw new BadRequest(`the path ${pathname} is not valid percent-encoding`);
  }
}

function parseBody(text: string, contentType: string): { body: unknown; bodyIsMalformed: boolean } {
  if (text === '') return { body: null, bodyIsMalformed: false };
  if (contentType.startsWith('application/x-www-form-urlencoded')) {
    return { body: Object.fromEntries(new URLSearchParams(text)), bodyIsMalformed: false };
  }
  try {
    return { body: JSON.parse(text), bodyIsMalformed: false };
  } catch {
    return { body: text, bodyIsMalformed: true };
  }
}

/** The response as HTTP sends it. */
export function encoded({ status, headers, body: content }: SimResponse) {
  const body = content === undefined ? '' : JSON.stringify(content);
  return {
    status,
    headers: {
      ...(body !== '' && { 'content-type': 'application/json; charset=utf-8' }),
      ...(status !== 204 && { 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    },
    body,
  };
}

/** The first half, at least one byte: with no byte, the caller would see a lost response. */
export const firstHalf = (body: string): Buffer => {
  const bytes = Buffer.from(body);
  return bytes.subarray(0, Math.max(1, bytes.length >> 1));
};

export function sendResponse(response: ServerResponse, answer: SimResponse, delivery: Delivery = 'whole'): void {
  if (delivery === 'lost') {
    response.socket?.destroy();
    return;
  }
  const { status, headers, body } = encoded(answer);
  response.writeHead(status, headers);
  if (delivery === 'whole') {
    response.end(body);
    return;
  }
  response.flushHeaders();
  response.write(firstHalf(body), () => response.socket?.destroy());
}

/** The body as an object, or an empty object. The system then reports the missing field with its own error. */
export function fieldsOf(body: unknown): Record<string, unknown> {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
