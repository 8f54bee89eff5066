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

/** Reads the whole request. `mount` is the part of the path before the system's own path. */
export async function readCall(request: IncomingMessage, mount: string): Promise<SimCall> {
  const path = (request.url ?? '/').slice(mount.length) || '/';
  const [pathname = '/', ...query] = path.split('?');
  const text = await readText(request);
  return {
    method: request.method ?? 'GET',
    path,
    segments: decodeSegments(pathname),
    query: new URLSearchParams(query.join('?')),
    ...parseBody(text, request.headers['content-type'] ?? ''),
    header: (name) => {
      const value = request.headers[name.toLowerCase()];
      return Array.isArray(value) ? value[0] : value;
    },
  };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new BadRequest(`the body exceeds ${MAX_BODY_BYTES} bytes`, 413);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
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

export function sendResponse(response: ServerResponse, answer: SimResponse, delivery: Delivery = 'whole'): void {
  if (delivery === 'lost') {
    response.socket?.destroy();
    return;
  }
  const body = Buffer.from(answer.body === undefined ? '' : JSON.stringify(answer.body));
  response.writeHead(answer.status, {
    ...(body.length > 0 && { 'content-type': 'application/json; charset=utf-8' }),
    ...(answer.status !== 204 && { 'content-length': String(body.length) }),
    ...answer.headers,
  });
  if (delivery === 'whole') {
    response.end(body);
    return;
  }
  // Send the first half before closing the socket, or the caller would see a lost response instead of a cut one.
  response.flushHeaders();
  response.write(body.subarray(0, Math.max(1, body.length >> 1)), () => response.socket?.destroy());
}

/** The body as an object, or an empty object. The system then reports the missing field with its own error. */
export function fieldsOf(body: unknown): Record<string, unknown> {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
