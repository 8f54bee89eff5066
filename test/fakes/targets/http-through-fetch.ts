import { EventEmitter } from 'node:events';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';

/** The one address that is intercepted: `http.request` may reach it without DNS or TLS, because it is the stage's own. */
export const HOOKS_URL = 'http://127.0.0.1:8443';
export const HOOKS_HOST = '127.0.0.1:8443';

type Code = { code?: unknown };

/**
 * `http.request` and `http.get` use Node's client, not `fetch`. This sends their requests to `HOOKS_URL` through the current
 * `fetch`, so that the same fake targets, faults and virtual time apply to them. Returns a function that undoes it.
 */
export function sendHttpThroughFetch(): () => void {
  const { request } = http;
  const intercept = ((url: URL, options: http.RequestOptions) =>
    url.host === HOOKS_HOST ? new FetchedRequest(url, options) : request(url, options)) as typeof http.request;
  http.request = intercept;
  syncBuiltinESMExports();
  return () => {
    http.request = request;
    syncBuiltinESMExports();
  };
}

class FetchedRequest extends EventEmitter {
  readonly #url: URL;
  readonly #options: http.RequestOptions;

  constructor(url: URL, options: http.RequestOptions) {
    super();
    this.#url = url;
    this.#options = options;
  }

  end(body?: string): void {
    const { method = 'GET', headers } = this.#options;
    const sent = { method, headers: headers as Record<string, string>, ...(body !== undefined && { body }) };
    fetch(this.#url, sent).then(
      (response) => this.#answer(response),
      (error: Error) => this.#fail(error.cause ?? error),
    );
  }

  destroy(): void {}

  #connect(): void {
    const socket = new EventEmitter();
    this.emit('socket', socket);
    socket.emit('connect');
  }

  async #answer(response: Response): Promise<void> {
    this.#connect();
    const text = await response.text();
    this.emit('response', {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      async *[Symbol.asyncIterator]() {
        yield Buffer.from(text);
      },
    });
  }

  #fail(cause: unknown): void {
    if ((cause as Code).code !== 'ECONNREFUSED') this.#connect();
    this.emit('error', cause);
  }
}
