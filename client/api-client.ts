import type { Contract } from '../lambdas/api/contract/index.ts';
import type { ReceivedFrom, RouteDefinition } from '../lambdas/api/contract/route.ts';

/** API Gateway ends a request after 30 s. */
const RESPONSE_TIMEOUT_MS = 30_000;
const CREATED = 201;

type AnyRoute = { [Group in keyof Contract]: Contract[Group][keyof Contract[Group]] }[keyof Contract];

/** Every route of the contract, by its key: `GET /api/v1/runs/{id}`. Only types: the client loads no schema. */
type ApiRoutes = { [Route in AnyRoute as `${Route['method']} ${Route['path']}`]: Route };
export type RouteKey = keyof ApiRoutes;

/** A part of a request. It may be missing if the route has no such part, or accepts it empty. */
type Part<Route extends RouteDefinition, Name extends 'params' | 'query' | 'body'> = Route[Name] extends {
  _zod: { input: infer Input };
}
  ? Record<never, unknown> extends Input
    ? { [Key in Name]?: Input }
    : { [Key in Name]: Input }
  : { [Key in Name]?: undefined };

export type RequestFor<Key extends RouteKey> = Part<ApiRoutes[Key], 'params'> &
  Part<ApiRoutes[Key], 'query'> &
  Part<ApiRoutes[Key], 'body'> & { headers?: Record<string, string> };

export type ResponseFrom<Key extends RouteKey> = ReceivedFrom<ApiRoutes[Key]>;

/** Of `call`: the request, which may be missing if the route needs nothing. */
export type Arguments<Key extends RouteKey> =
  Record<never, unknown> extends RequestFor<Key> ? [request?: RequestFor<Key>] : [request: RequestFor<Key>];

interface AnyRequest {
  params?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string>;
}

/** The API refused the request, or failed. */
export class ApiError extends Error {
  readonly status: number;
  /** The code of the problem document; undefined if something other than the API responded. */
  readonly code: string | undefined;
  constructor(status: number, problem: { code?: unknown; detail?: unknown } | undefined) {
    super(typeof problem?.detail === 'string' ? problem.detail : '');
    this.status = status;
    this.code = typeof problem?.code === 'string' ? problem.code : undefined;
  }
}

/** No response arrived. The request may have had an effect. */
export class NoResponse extends Error {
  readonly afterMs: number | undefined;
  constructor(cause: unknown) {
    super('no response', { cause });
    const isLate = cause instanceof Error && cause.name === 'TimeoutError';
    this.afterMs = isLate ? RESPONSE_TIMEOUT_MS : undefined;
  }
}

/** The headers that identify the caller, e.g. `x-api-key`. A function is called for each request, to refresh tokens. */
export type Credentials = Readonly<Record<string, string>> | (() => Promise<Readonly<Record<string, string>>>);

/**
 * Calls the HTTP API as the route contract describes it, in Node.js and in browsers:
 * `client.call('GET /api/v1/runs/{id}', { params: { id } })`.
 */
export class ApiClient {
  readonly url: string;
  readonly #headers: Credentials;
  readonly #onResponse: ((headers: Headers, sentMs: number) => void) | undefined;

  /** `onResponse` sees the headers of every response, and when its request was sent. */
  constructor(url: string, headers: Credentials, onResponse?: (headers: Headers, sentMs: number) => void) {
    this.url = url;
    this.#headers = headers;
    this.#onResponse = onResponse;
  }

  /** The body of a successful response. */
  async call<Key extends RouteKey>(key: Key, ...request: Arguments<Key>): Promise<ResponseFrom<Key>> {
    const { body } = await this.create(key, ...request);
    return body;
  }

  /** As `call`, and whether the request created something: not if the same request did so before. */
  async create<Key extends RouteKey>(
    key: Key,
    ...[request]: Arguments<Key>
  ): Promise<{ isNew: boolean; body: ResponseFrom<Key> }> {
    const { isOk, status, text } = await this.#send(key, (request ?? {}) as AnyRequest);
    const body = parsed(text);
    if (isOk && body) return { isNew: status === CREATED, body: body as ResponseFrom<Key> };
    throw new ApiError(status, body);
  }

  /** The bytes of a file. Large files are read in parts. */
  async download<Key extends RouteKey>(key: Key, request: RequestFor<Key>): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let from = 0; ; ) {
      const range = { range: `bytes=${from}-` };
      const { isOk, status, headers, bytes, text } = await this.#send(key, {
        ...(request as AnyRequest),
        headers: range,
      });
      if (!isOk) throw new ApiError(status, parsed(text));
      parts.push(bytes);
      from += bytes.length;
      const size = Number(headers.get('content-range')?.split('/')[1]);
      if (bytes.length === 0 || !(from < size)) return joined(parts);
    }
  }

  async #send(key: RouteKey, { params = {}, query = {}, body, headers }: AnyRequest): Promise<RawResponse> {
    const [method = '', path = ''] = key.split(' ');
    const credentials = typeof this.#headers === 'function' ? await this.#headers() : this.#headers;
    const filled = path.replace(/\{(\w+)\}/g, (_placeholder, name) => encodeURIComponent(String(params[name])));
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]));
    const sentMs = Date.now();
    const response = await send(this.url, `${filled}${given.length > 0 ? `?${search}` : ''}`, {
      method,
      headers: { ...contentType(body), ...headers, ...credentials },
      // A body that is text is a file, e.g. a workflow.
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    this.#onResponse?.(response.headers, sentMs);
    return response;
  }
}

const contentType = (body: unknown): Record<string, string> =>
  body === undefined ? {} : { 'content-type': typeof body === 'string' ? 'application/yaml' : 'application/json' };

export interface RawResponse {
  isOk: boolean;
  status: number;
  headers: Headers;
  bytes: Uint8Array;
  text: string;
}

/** Sends a request as it is, for example a signed webhook. */
export async function send(url: string, path: string, init: RequestInit): Promise<RawResponse> {
  try {
    const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const { ok: isOk, status, headers } = response;
    return { isOk, status, headers, bytes, text: new TextDecoder().decode(bytes) };
  } catch (cause) {
    throw new NoResponse(cause);
  }
}

/** The JSON object in a text. */
export function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
