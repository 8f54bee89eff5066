// Passes the AWS requests of a function thread to the host as messages. The SDK makes, signs and reads them as for a socket, but
// no socket, HTTP client and HTTP server are needed between two threads of one process: half of the CPU time of a request.
import { Readable, Writable } from 'node:stream';

const IS_S3 = /Credential=[^,]*\/s3\/aws4_request/;

/**
 * Replaces `http.request` for this endpoint. Returns the function that takes the replies of the host. Requests to other addresses
 * use sockets as before.
 */
export function passAwsRequests(endpointUrl, post) {
  const http = process.getBuiltinModule('node:http');
  const { hostname, port } = new URL(endpointUrl);
  const { request } = http;
  const waiting = new Map();
  let lastId = 0;
  http.request = (options, onResponse) => {
    if (options?.host !== hostname || String(options.port) !== port) return request(options, onResponse);
    lastId += 1;
    const passed = new PassedRequest(lastId, options, { post, onResponse, ended: (id) => waiting.delete(id) });
    waiting.set(lastId, passed);
    return passed;
  };
  return (reply) => waiting.get(reply.id)?.receive(reply);
}

/** What the SDK, which passes `onResponse`, and the `fetch` of bundles, which listens to `response`, need of a ClientRequest. */
class PassedRequest extends Writable {
  #id;
  #options;
  #ports;
  #chunks = [];

  constructor(id, options, ports) {
    super();
    this.#id = id;
    this.#options = options;
    this.#ports = ports;
  }

  /** Almost every body arrives whole. */
  end(body) {
    if (this.#chunks.length > 0 || typeof body === 'function') return super.end(body);
    this.#send(body ?? '');
    return this;
  }

  _write(chunk, _encoding, done) {
    this.#chunks.push(chunk);
    done();
  }

  _final(done) {
    this.#send(Buffer.concat(this.#chunks));
    done();
  }

  _destroy(error, done) {
    this.#ports.ended(this.#id);
    done(error);
  }

  /** The host always replies, or ends the thread. */
  setTimeout() {
    return this;
  }

  #send(body) {
    const { method, path, headers } = this.#options;
    const sent = typeof body === 'string' ? body : Uint8Array.from(body);
    this.#ports.post({ kind: 'aws', id: this.#id, method, path, headers, body: sent });
  }

  receive({ status, headers, body, lost }) {
    this.#ports.ended(this.#id);
    if (lost) {
      this.destroy(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }));
      return;
    }
    const bytes = Buffer.from(body);
    const { onResponse } = this.#ports;
    // Objects of S3 are read as streams. The SDK takes other bodies as bytes, too, which saves a stream for each.
    const asBytes = onResponse && !IS_S3.test(this.#options.headers.authorization ?? '');
    const response = asBytes ? bytes : Readable.from([bytes]);
    Object.assign(response, { statusCode: status, statusMessage: '', headers });
    if (onResponse) onResponse(response);
    else this.emit('response', response);
  }
}
