import { type ClientRequest, type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http';
import { request as requestTls, Agent as TlsAgent } from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { constants, createBrotliDecompress, createGunzip } from 'node:zlib';

/** What functions use of the parameters of `fetch`. Redirects are returned, not followed. */
interface Init {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array | URLSearchParams;
  signal?: AbortSignal;
  redirect?: 'manual';
}

/** As in the `fetch` of Node.js. Many servers close a connection that was idle for 5 s. */
const IDLE_CONNECTION_MS = 4_000;
const KEEP_ALIVE = { keepAlive: true, timeout: IDLE_CONNECTION_MS };
// Pure, so that bundles without requests leave this file out.
const agents = { plain: /* @__PURE__ */ new PlainAgent(KEEP_ALIVE), tls: /* @__PURE__ */ new TlsAgent(KEEP_ALIVE) };

// As the `fetch` of Node.js: an empty body may be said to be compressed. HTTP shows whether a body is complete, or its reader does.
const GZIP = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH };
/** A map, because the other side chooses the name that is looked up: `constructor` would be found in an object. */
const DECODERS = new Map<string, () => NodeJS.ReadWriteStream & Readable>([
  ['gzip', () => createGunzip(GZIP)],
  ['br', () => createBrotliDecompress(BROTLI)],
]);
const ACCEPTED = 'gzip, br';

/**
 * Bundles contain this function in place of the global `fetch` (lib/bundle-functions.ts), because that takes three times the CPU
 * time for a request, and as long as the import of a small function when it is first called. What functions do not use is left out.
 */
export function fetch(address: string | URL, { method = 'GET', headers, body, signal }: Init = {}): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    const failed = (cause: unknown) => reject(new TypeError('fetch failed', { cause }));
    const url = new URL(address);
    // As the global `fetch`: such a URL would put a password into logs.
    if (url.username || url.password) return failed(new Error('the URL contains credentials'));
    if (signal?.aborted) return reject(signal.reason);
    const { hostname, port, path } = urlToHttpOptions(url);
    const content = body instanceof URLSearchParams ? String(body) : body;
    // For DELETE, Node.js would send a body without its length, which servers read as the next request.
    const length = content === undefined ? undefined : { 'content-length': String(Buffer.byteLength(content)) };
    const sentHeaders = { 'accept-encoding': ACCEPTED, ...headers, ...length };
    const options = { host: hostname, port, path, method, headers: sentHeaders };
    const sent =
      url.protocol === 'https:'
        ? requestTls({ ...options, agent: agents.tls })
        : requestPlain({ ...options, agent: agents.plain });
    abortWith(signal, sent, reject);
    sent.on('error', failed);
    const closed = () => failed(new Error('the connection was closed without a response'));
    sent.once('close', closed);
    sent.once('response', (response: IncomingMessage) => {
      sent.off('close', closed);
      resolve(new Fetched(response));
    });
    sent.end(content);
  });
}

/** Ends the request, and the response if it has begun. */
function abortWith(signal: AbortSignal | undefined, sent: ClientRequest, reject: (reason: unknown) => void): void {
  if (!signal) return;
  const abort = () => {
    reject(signal.reason);
    sent.destroy(signal.reason as Error);
  };
  signal.addEventListener('abort', abort, { once: true });
  sent.once('close', () => signal.removeEventListener('abort', abort));
}

/** What functions use of a `Response`. Its body must be read or cancelled, so that the connection can be used again. */
class Fetched {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> & { cancel(): Promise<void> };

  constructor(response: IncomingMessage) {
    this.status = response.statusCode ?? 0;
    this.headers = {
      get: (name) => {
        const value = response.headers[name.toLowerCase()];
        return value === undefined ? null : [value].flat().join(', ');
      },
    };
    const body = decoded(response);
    const cancel = async () => {
      // The next request uses the connection, if nothing more of this response arrives on it.
      if (response.complete && body === response) response.resume();
      else response.destroy();
    };
    this.body = Object.assign(body, { cancel });
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  async text(): Promise<string> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.body) pieces.push(piece);
    return Buffer.concat(pieces).toString('utf8');
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }
}

function decoded(response: IncomingMessage): Readable {
  const decoder = DECODERS.get(String(response.headers['content-encoding']).toLowerCase().replace(/^x-/, ''));
  // The reader of the decoder sees the errors of both.
  return decoder ? pipeline(response, decoder(), () => undefined) : response;
}
