// A function thread sends its requests to AWS and to the simulators as messages to the host. The SDK and the `fetch` of bundles create,
// sign and read them as usual. Without sockets, HTTP client and HTTP server, a request takes half of the CPU time.
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';

// `import` would load all exports of node:http, including another HTTP client: 40 of the 220 ms that a thread needs to start.
const http = process.getBuiltinModule('node:http');

/** Characters that no HTTP client sends in a path. */
const UNESCAPED = /[^\u0021-\u00ff]/;
const IS_S3 = /Credential=[^,]*\/s3\/aws4_request/;

/**
 * Replaces `http.request` for the addresses of the host: `{ url, kind, under }`, where `under` is the beginning of the paths.
 * Returns the function that takes the replies of the host. Requests to other addresses use sockets as before.
 */
export function passRequests(addresses, post) {
  const passed = addresses.map(({ url, ...rest }) => ({
    ...rest,
    host: new URL(url).hostname,
    port: new URL(url).port,
  }));
  const { request } = http;
  const waiting = new Map();
  let lastId = 0;
  http.request = (options, ...others) => {
    const address = passed.find(
      ({ host, port, under }) =>
        host === options?.host && port === String(options.port) && String(options.path).startsWith(under),
    );
    // Node's own client refuses what it would not send.
    if (!address || UNESCAPED.test(options.path)) return request(options, ...others);
    lastId += 1;
    const [onResponse] = others;
    const ports = { kind: address.kind, post, onResponse, ended: (id) => waiting.delete(id) };
    const sent = new PassedRequest(lastId, options, ports);
    waiting.set(lastId, sent);
    return sent;
  };
  return (reply) => waiting.get(reply.id)?.receive(reply);
}

/**
 * The part of ClientRequest that is needed by the SDK (which passes `onResponse`) and by the `fetch` of bundles (which listens to
 * `response`). Almost every body arrives whole, and creating a stream takes longer than sending the request.
 */
class PassedRequest extends EventEmitter {
  #id;
  #options;
  #ports;
  #headers;
  #response;
  #chunks = [];
  #isDestroyed = false;

  constructor(id, options, ports) {
    super();
    this.#id = id;
    this.#options = options;
    this.#headers = headerLines(options.headers);
    this.#ports = ports;
  }

  /** A stream that is piped here writes its chunks. */
  write(chunk) {
    this.#chunks.push(Buffer.from(chunk));
    return true;
  }

  end(body) {
    if (this.#chunks.length === 0) {
      this.#send(body ?? '');
    } else {
      if (body !== undefined) this.write(body);
      this.#send(Buffer.concat(this.#chunks));
    }
    return this;
  }

  /** Like a ClientRequest: destroying the request also destroys a response that was not read completely. */
  destroy(error) {
    if (this.#isDestroyed) return this;
    this.#isDestroyed = true;
    this.#ports.ended(this.#id);
    this.#response?.destroy(error ?? undefined);
    process.nextTick(() => {
      if (error) this.emit('error', error);
      this.emit('close');
    });
    return this;
  }

  /** The host always replies, or ends the thread. */
  setTimeout() {
    return this;
  }

  #send(body) {
    const { method, path, headers } = this.#options;
    const sent = typeof body === 'string' || isJson(headers, body) ? String(body) : Uint8Array.from(body);
    this.#ports.post({ kind: this.#ports.kind, id: this.#id, method, path, headers: this.#headers, body: sent });
  }

  receive({ status, headers, body, lost, cut }) {
    this.#ports.ended(this.#id);
    if (lost) {
      this.destroy(connectionReset('socket hang up'));
      return;
    }
    const bytes = Buffer.from(body);
    const { onResponse } = this.#ports;
    // Objects of S3 are read as streams. The SDK takes other bodies as bytes, too, which saves a stream for each.
    if (onResponse && !IS_S3.test(this.#options.headers.authorization ?? '')) {
      onResponse(Object.assign(bytes, { statusCode: status, statusMessage: '', headers }));
      return;
    }
    const response = new PassedResponse(bytes, cut);
    Object.assign(response, { statusCode: status, statusMessage: '', headers });
    this.#response = response;
    response.once('close', () => this.destroy());
    if (onResponse) onResponse(response);
    else this.emit('response', response);
  }
}

/** A response whose bytes have all arrived. */
class PassedResponse extends Readable {
  #bytes;
  #isCut;

  constructor(bytes, isCut) {
    super();
    this.#bytes = bytes;
    this.#isCut = isCut;
  }

  /** As an IncomingMessage: an error that nobody listens to is not thrown. */
  _destroy(error, done) {
    done(this.listenerCount('error') > 0 ? error : null);
  }

  _read() {
    if (this.#bytes.length > 0) this.push(this.#bytes);
    this.#bytes = Buffer.alloc(0);
    if (this.#isCut) this.destroy(connectionReset('aborted'));
    else this.push(null);
  }

  /** The iterator of streams takes longer than the rest of a request. */
  async *[Symbol.asyncIterator]() {
    if (this.destroyed) throw this.errored ?? connectionReset('aborted');
    const bytes = this.#bytes;
    this.#bytes = Buffer.alloc(0);
    try {
      if (bytes.length > 0) yield bytes;
      if (this.#isCut) throw connectionReset('aborted');
    } finally {
      this.destroy();
    }
  }
}

/** HTTP headers contain no line breaks, so they are one text, which is copied faster than an object. Refuses what `http.request` refuses, such as a credential with a line break. */
const headerLines = (headers) => {
  let lines = '';
  for (const name in headers) {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, headers[name]);
    lines += `${name}\n${headers[name]}\n`;
  }
  return lines;
};

/** The SDK encodes JSON before it sends it. A text is copied faster than bytes, and the host needs the text. */
const isJson = (headers, body) => headers?.['x-amz-target'] !== undefined && Buffer.isBuffer(body);

const connectionReset = (message) => Object.assign(new Error(message), { code: 'ECONNRESET' });
