import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { exchange, RESPONSE_MAX_BYTES } from '../../lambdas/connectors/exchange.ts';
import { fetch as bundledFetch } from '../../lambdas/entry/bundle-replacements/node-fetch.ts';
import { freePort } from '../../local/host/free-port.ts';

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let url: string;
let answering: Answering;
let received: { method?: string; body: string; headers: IncomingMessage['headers'] }[] = [];
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ method: request.method, body: Buffer.concat(chunks).toString(), headers: request.headers });
    answering(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

afterEach(() => vi.unstubAllGlobals());

const ask = (method: 'GET' | 'POST', how: Answering, address = url) => {
  received = [];
  answering = how;
  return exchange({
    system: 'Target',
    method,
    url: address,
    headers: { authorization: 'Bearer x' },
    body: method === 'POST' ? { a: 1 } : undefined,
    responseSchema: z.object({ done: z.boolean() }),
  });
};
const says =
  (status: number, body: string | Buffer, headers: Record<string, string> = {}): Answering =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);
const DONE = '{"done":true}';

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const LATER = { code: 'TARGET_REFUSED', retryable: true };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };
const MOVED = { ...REFUSED, message: expect.stringMatching(/new name/) };
/** To an address that must not get the credential. */
const redirects =
  (status: number): Answering =>
  (_request, response) =>
    response.writeHead(status, { location: `${url}/CANARY` }).end();

const UNTRUSTED = { ...REFUSED, message: expect.stringMatching(/certificate/) };
const failure = (code: string, syscall?: string) => Object.assign(new Error(code), { code, syscall });
const DAY_MS = 24 * 3_600_000;

/** According to the target's clock, not the local one. */
const RESETS_IN_90_S = {
  date: 'Sat, 01 Jan 2000 00:00:00 GMT',
  'x-ratelimit-reset': String(Date.UTC(2000, 0, 1, 0, 1, 30) / 1000),
};

/** Each response, and its outcome for a write and for a read. */
const ANSWERS: [string, Answering, object, object][] = [
  [
    '429 with Retry-After',
    says(429, '', { 'retry-after': '7' }),
    { ...LATER, retryAfterMs: 7_000 },
    { ...LATER, retryAfterMs: 7_000 },
  ],
  ['429 without', says(429, ''), { ...LATER, retryAfterMs: 60_000 }, { ...LATER, retryAfterMs: 60_000 }],
  [
    '429 with a date',
    says(429, '', { 'retry-after': 'Fri, 02 Jan 2026 03:04:05 GMT' }),
    { ...LATER, retryAfterMs: 60_000 },
    LATER,
  ],
  ['403 that says slow down', says(403, '', { 'retry-after': '9' }), { ...LATER, retryAfterMs: 9_000 }, LATER],
  [
    '403 with nothing left of a rate',
    says(403, '', { 'x-ratelimit-remaining': '0' }),
    { ...LATER, retryAfterMs: 60_000 },
    LATER,
  ],
  [
    '403 with nothing left until a time',
    says(403, '', { 'x-ratelimit-remaining': '0', ...RESETS_IN_90_S }),
    { ...LATER, retryAfterMs: 90_000 },
    { ...LATER, retryAfterMs: 90_000 },
  ],
  [
    '429 with nothing left until a time that is over',
    says(429, '', { 'x-ratelimit-remaining': '0', ...RESETS_IN_90_S, 'x-ratelimit-reset': '1' }),
    { ...LATER, retryAfterMs: 60_000 },
    LATER,
  ],
  [
    '429 with longer than anybody waits',
    says(429, '', { 'retry-after': '1e400' }),
    { ...LATER, retryAfterMs: DAY_MS },
    LATER,
  ],
  ['403 with some left', says(403, '', { 'x-ratelimit-remaining': '9', ...RESETS_IN_90_S }), REFUSED, REFUSED],
  ['403', says(403, ''), REFUSED, REFUSED],
  ['400', says(400, DONE), REFUSED, REFUSED],
  ['404', says(404, DONE), REFUSED, REFUSED],
  ['500', says(500, DONE), UNKNOWN, LATER],
  ['503', says(503, ''), UNKNOWN, LATER],
  ['200 that is no JSON', says(200, '<html>'), UNKNOWN, LATER],
  ['200 of another shape', says(200, '{"error":"no"}'), UNKNOWN, LATER],
  ['200 with nothing', says(200, ''), UNKNOWN, LATER],
  ['301, which is what a renamed repository answers to a read', redirects(301), MOVED, MOVED],
  ['302, which is what a login page is behind', redirects(302), MOVED, MOVED],
  ['307, which is what a renamed repository answers to a write', redirects(307), MOVED, MOVED],
  ['a connection that ends', (_request, response) => response.socket?.destroy(), UNKNOWN, LATER],
  [
    'a body that ends too early',
    (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write(DONE, () => response.socket?.destroy());
    },
    UNKNOWN,
    LATER,
  ],
];

/** Bundles of functions have their own. */
describe.each([
  ['the fetch of Node.js', globalThis.fetch],
  ['the fetch of bundles', bundledFetch],
])('with %s', (_name, fetch) => {
  beforeEach(() => {
    vi.stubGlobal('fetch', fetch);
  });

  describe('a response that is too large', () => {
    /** Writes as long as the client reads. */
    let written = 0;
    const endless =
      (status: number, headers: Record<string, string> = {}): Answering =>
      (_request, response) => {
        written = 0;
        response.writeHead(status, headers);
        const piece = Buffer.alloc(64 * 1024, ' ');
        const write = () => {
          while (!response.destroyed) {
            written += piece.length;
            if (!response.write(piece)) return response.once('drain', write);
          }
        };
        write();
      };
    /** 64 MiB of spaces in 64 KiB. */
    const PACKED = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
    const TOO_LARGE: [string, Answering][] = [
      ['an answer without end', endless(200)],
      ['an answer that says it is short', endless(200, { 'transfer-encoding': 'chunked', 'x-length': '2' })],
      ['a small answer that unpacks to a huge one', says(200, PACKED, { 'content-encoding': 'gzip' })],
    ];

    it.each(TOO_LARGE)('leaves the outcome of a write unknown: %s', async (_what, how) => {
      await expect(ask('POST', how)).rejects.toMatchObject({ ...UNKNOWN, message: expect.stringContaining('8388608') });
      expect(received).toHaveLength(1);
    });

    it.each(TOO_LARGE)('fails a read, which is not retried: %s', async (_what, how) => {
      await expect(ask('GET', how)).rejects.toMatchObject({ ...REFUSED, message: expect.stringContaining('8388608') });
    });

    it.each([200, 301, 400, 429, 500])('with status %i is not read to the end', async (status) => {
      const closed = Promise.withResolvers<void>();
      const watched: Answering = (request, response) => {
        response.once('close', () => closed.resolve());
        endless(status)(request, response);
      };
      await expect(ask('POST', watched)).rejects.toBeDefined();
      await closed.promise;
      // The read bytes, and those in the buffers of the client, the server and the system.
      expect(written).toBeLessThan(4 * RESPONSE_MAX_BYTES);
    });

    it('of exactly the limit is read', async () => {
      const whole = `{"done":true${' '.repeat(RESPONSE_MAX_BYTES - DONE.length)}}`;
      expect(await ask('GET', says(200, whole))).toMatchObject({ body: { done: true } });
      await expect(ask('GET', says(200, ` ${whole}`))).rejects.toMatchObject(REFUSED);
    });
  });

  describe('an exchange', () => {
    it('sends one request and returns the response', async () => {
      expect(await ask('POST', says(201, '{"done":true,"more":1}'))).toMatchObject({
        status: 201,
        body: { done: true },
      });
      expect(received).toHaveLength(1);
      expect(received[0]).toMatchObject({
        method: 'POST',
        body: '{"a":1}',
        headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
      });
    });

    it.each(ANSWERS)('maps %s to the outcome of a write, and sends no second request', async (_what, how, meaning) => {
      await expect(ask('POST', how)).rejects.toMatchObject(meaning);
      expect(received).toHaveLength(1);
    });

    it.each(ANSWERS)('maps %s to the outcome of a read, which changed nothing', async (_what, how, _write, meaning) => {
      await expect(ask('GET', how)).rejects.toMatchObject(meaning);
    });

    it('to an unreachable host was not made', async () => {
      const nobody = `http://127.0.0.1:${await freePort()}`;
      await expect(ask('POST', says(200, DONE), nobody)).rejects.toMatchObject(LATER);
    });

    it.each<[string, unknown, object]>([
      ['a host that is not known', failure('ENOTFOUND', 'getaddrinfo'), LATER],
      ['a host without a way to it', failure('EHOSTUNREACH', 'connect'), LATER],
      ['a network without a way to it', failure('ENETUNREACH', 'connect'), LATER],
      ['a connection that is not accepted', failure('UND_ERR_CONNECT_TIMEOUT'), LATER],
      [
        'no address that answers',
        new AggregateError([failure('ETIMEDOUT', 'connect'), failure('ECONNREFUSED')]),
        LATER,
      ],
      ['a certificate that is over', failure('CERT_HAS_EXPIRED'), UNTRUSTED],
      ['a self-signed certificate', failure('DEPTH_ZERO_SELF_SIGNED_CERT'), UNTRUSTED],
      ['a certificate of an unknown issuer', failure('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), UNTRUSTED],
      ['a certificate for another name', failure('ERR_TLS_CERT_ALTNAME_INVALID'), UNTRUSTED],
      ['a way that was lost on the way', failure('EHOSTUNREACH', 'read'), UNKNOWN],
      ['a connection that was cut', failure('ECONNRESET', 'read'), UNKNOWN],
      ['a connection that was closed', failure('UND_ERR_SOCKET'), UNKNOWN],
      ['one address that may have got it', new AggregateError([failure('ECONNREFUSED'), failure('EPIPE')]), UNKNOWN],
    ])('maps %s to the outcome of a write', async (_what, cause, meaning) => {
      vi.stubGlobal('fetch', async () => {
        throw new TypeError('fetch failed', { cause });
      });
      await expect(ask('POST', says(200, DONE))).rejects.toMatchObject(meaning);
    });

    it('never quotes the target, which may echo the request', async () => {
      for (const status of [200, 301, 400, 429, 500]) {
        const how = says(status, 'CANARY', { location: `${url}/CANARY` });
        const failed = await ask('POST', how).catch((error: Error) => error);
        expect(inspect(failed, { depth: 10 })).not.toContain('CANARY');
      }
    });

    it('accepts an empty body only if none is expected', async () => {
      answering = says(204, '');
      const request = { system: 'Target', method: 'DELETE', url, headers: {} } as const;
      expect(await exchange({ ...request, responseSchema: z.undefined() })).toMatchObject({
        status: 204,
        body: undefined,
      });
      answering = says(200, DONE);
      await expect(exchange({ ...request, responseSchema: z.undefined() })).rejects.toMatchObject(UNKNOWN);
    });

    it('sends a form as a form, and a read-only POST without a response may be repeated', async () => {
      received = [];
      answering = says(503, '');
      const body = new URLSearchParams({ a: 'b c' });
      const responseSchema = z.object({ done: z.boolean() });
      const request = {
        system: 'Target',
        method: 'POST',
        url,
        headers: {},
        body,
        readOnly: true,
        responseSchema,
      } as const;
      await expect(exchange(request)).rejects.toMatchObject(LATER);
      expect(received).toMatchObject([
        { body: 'a=b+c', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      ]);
    });

    it('replaces lone surrogates, which cannot be hashed', async () => {
      answering = says(200, '{"done":"\\ud83d"}');
      const responseSchema = z.object({ done: z.string() });
      const request = { system: 'Target', method: 'GET', url, headers: {}, responseSchema } as const;
      expect((await exchange(request)).body.done).toBe('\ufffd');
    });
  });

  it('waits until the deadline for a response, and for the rest of one', async () => {
    const silent: Answering = () => undefined;
    const half: Answering = (_request, response) => void response.writeHead(200).write('{"done"');
    for (const how of [silent, half]) {
      answering = how;
      const request = { system: 'Target', method: 'POST', url, headers: {}, timeoutMs: 100 } as const;
      const responseSchema = z.object({ done: z.boolean() });
      await expect(exchange({ ...request, responseSchema })).rejects.toMatchObject(UNKNOWN);
    }
  });

  it('sends the length of every body, so that the connection can be used again', async () => {
    received = [];
    answering = says(200, DONE);
    for (const method of ['DELETE', 'PATCH', 'POST'] as const) {
      const request = { system: 'Target', method, url, headers: {}, body: { a: 'ä' } };
      await exchange({ ...request, responseSchema: z.object({ done: z.boolean() }) });
    }
    expect(received.map(({ method, body }) => `${method} ${body}`)).toEqual(
      ['DELETE', 'PATCH', 'POST'].map((method) => `${method} {"a":"ä"}`),
    );
  });

  it.each<[string, Answering]>([
    ['204', says(204, '', { 'content-encoding': 'gzip' })],
    ['200', says(200, '', { 'content-encoding': 'gzip' })],
    ['200 with brotli', says(200, '', { 'content-encoding': 'br' })],
  ])('reads an empty body that is said to be compressed: %s', async (_what, how) => {
    answering = how;
    const request = { system: 'Target', method: 'DELETE', url, headers: {} } as const;
    expect(await exchange({ ...request, responseSchema: z.undefined() })).toMatchObject({ body: undefined });
  });

  it('asks for compressed responses, and reads them', async () => {
    const how: Answering = (request, response) => {
      expect(request.headers['accept-encoding']).toContain('gzip');
      says(200, gzipSync(DONE), { 'content-encoding': 'gzip' })(request, response);
    };
    expect(await ask('GET', how)).toMatchObject({ body: { done: true } });
    const inCapitals = says(200, gzipSync(DONE), { 'content-encoding': 'GZIP' });
    expect(await ask('GET', inCapitals)).toMatchObject({ body: { done: true } });
    const cut = gzipSync(DONE).subarray(0, 12);
    await expect(ask('POST', says(200, cut, { 'content-encoding': 'gzip' }))).rejects.toMatchObject(UNKNOWN);
  });

  it.each(['constructor', '__proto__', 'toString', 'identity', ''])(
    'reads a body whose encoding is said to be "%s" as it is',
    async (encoding) => {
      expect(await ask('POST', says(200, DONE, { 'content-encoding': encoding }))).toMatchObject({
        body: { done: true },
      });
    },
  );

  it('uses the connection again after an empty response whose body it cancels', async () => {
    const connections = new Set<number | undefined>();
    answering = (request, response) => {
      connections.add(request.socket.remotePort);
      response.end();
    };
    for (let sent = 0; sent < 10; sent += 1) {
      const response = await fetch(url, { method: 'POST', body: 'message' });
      await response.body?.cancel();
      // The end of the response is known a moment later.
      await new Promise(setImmediate);
    }
    // The `fetch` of Node.js opens a second one.
    expect(connections.size).toBeLessThanOrEqual(2);
  });

  it('sends nothing to an address with a password', async () => {
    const address = url.replace('http://', 'http://name:password@');
    await expect(ask('POST', says(200, DONE), address)).rejects.toMatchObject(UNKNOWN);
    expect(received).toEqual([]);
  });
});

it('the fetch of bundles uses a connection again', async () => {
  vi.stubGlobal('fetch', bundledFetch);
  const ports = new Set<number | undefined>();
  const how: Answering = (request, response) => {
    ports.add(request.socket.remotePort);
    says(200, DONE)(request, response);
  };
  for (let each = 0; each < 3; each += 1) await ask('POST', how);
  expect(ports.size).toBe(1);
});
