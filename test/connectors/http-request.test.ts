import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../lambdas/connectors/http/public-address.ts';
import { httpOperations, httpRequest } from '../../lambdas/connectors/http/request.ts';
import { type SentRequest, sendToChecked } from '../../lambdas/connectors/http/send.ts';
import { freePort } from '../../local/host/free-port.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let ownUrl: string;
let answering: Answering;
let received: { method?: string; path?: string; body: string; headers: IncomingMessage['headers'] }[] = [];
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url: path, headers } = request;
    received.push({ method, path, body: Buffer.concat(chunks).toString(), headers });
    answering(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  ownUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const resolveNothing = async () => [];
const { request, get } = httpOperations({ resolve: resolveNothing, send: sendToChecked });
const MARK = 'countersign:0123456789abcdef0123';
const performanceAt = (url: string, credential?: unknown) => {
  const access = { baseUrl: url, instance: 'acme', credential, allowedHosts: [new URL(url).host], ownUrl: url };
  return { access, mark: MARK, openSince: STORY_BEGINS_AT };
};
const ask = (input: object, how: Answering, credential?: unknown) => {
  received = [];
  answering = how;
  const parsed = request.parse({ method: 'POST', url: `${ownUrl}/things`, ...input });
  return request.perform(parsed, performanceAt(ownUrl, credential));
};
const says =
  (status: number, body: string | Buffer = '', headers: Record<string, string> = {}): Answering =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const LATER = { code: 'TARGET_REFUSED', retryable: true };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };

/** Each response, and its outcome for a write and for a read. */
const ANSWERS: [string, Answering, object, object][] = [
  ['429 with Retry-After', says(429, '', { 'retry-after': '7' }), { ...LATER, retryAfterMs: 7_000 }, LATER],
  ['429 without', says(429), { ...LATER, retryAfterMs: 60_000 }, LATER],
  ['400', says(400, 'CANARY'), REFUSED, REFUSED],
  ['403', says(403), REFUSED, REFUSED],
  ['500', says(500, 'CANARY'), UNKNOWN, LATER],
  ['503', says(503), UNKNOWN, LATER],
  ['307, which was not done here', says(307, '', { location: 'http://169.254.169.254/' }), REFUSED, REFUSED],
  ['308, which was not done here', says(308, '', { location: '/elsewhere' }), REFUSED, REFUSED],
  ['302, which may follow the deed', says(302, '', { location: 'http://169.254.169.254/' }), UNKNOWN, REFUSED],
  ['303, which may follow the deed', says(303, '', { location: '/things/1' }), UNKNOWN, REFUSED],
  ['JSON that is none', says(200, '{"CANARY":', JSON_TYPE), UNKNOWN, LATER],
  ['JSON without bottom', says(200, '['.repeat(65) + ']'.repeat(65), JSON_TYPE), UNKNOWN, LATER],
  ['a connection that ends', (_request, response) => response.socket?.destroy(), UNKNOWN, LATER],
  [
    'a body that ends too early',
    (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.socket?.destroy());
    },
    UNKNOWN,
    LATER,
  ],
  [
    'a change of protocol',
    (_request, response) =>
      response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    UNKNOWN,
    LATER,
  ],
];

describe('an http request', () => {
  it('sends one request and returns the response', async () => {
    const body = { a: [1, 'ä'] };
    const result = await ask(
      { body, headers: { 'X-Kind': 'test' } },
      says(201, '{"id":7}', { ...JSON_TYPE, etag: '"1"' }),
    );
    expect(result).toEqual({
      output: { status: 201, headers: { 'content-type': JSON_TYPE['content-type'], etag: '"1"' }, body: { id: 7 } },
      reversal: { irreversible: expect.any(String) },
      response: { status: 201 },
    });
    expect(httpRequest.output.parse(result.output)).toEqual(result.output);
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({
      method: 'POST',
      path: '/things',
      body: JSON.stringify(body),
      headers: { 'x-kind': 'test', 'content-type': 'application/json', host: new URL(ownUrl).host },
    });
  });

  it('sends text unchanged', async () => {
    const { output } = await ask({ method: 'PUT', body: 'plain' }, says(200, 'done', { 'content-type': 'text/plain' }));
    expect(output).toMatchObject({ body: 'done' });
    expect(received[0]).toMatchObject({ body: 'plain', headers: { 'content-type': 'text/plain; charset=utf-8' } });
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'])('can be a %s', async (method) => {
    expect((await ask({ method }, says(204))).output).toMatchObject({ status: 204, body: '' });
    expect(received[0]?.method).toBe(method);
  });

  it.each(ANSWERS)('maps %s to the outcome of a write: one request, to this host only', async (_what, how, meaning) => {
    await expect(ask({}, how)).rejects.toMatchObject(meaning);
    expect(received.map(({ path }) => path)).toEqual(['/things']);
  });

  it.each(ANSWERS)('maps %s to the outcome of a read, which changed nothing', async (_what, how, _write, meaning) => {
    await expect(ask({ method: 'GET' }, how)).rejects.toMatchObject(meaning);
    expect(received.map(({ path }) => path)).toEqual(['/things']);
  });

  it('treats only the expected statuses as success', async () => {
    expect((await ask({ expectStatus: 404 }, says(404))).output).toMatchObject({ status: 404 });
    const moved = says(303, '', { location: '/things/1' });
    expect((await ask({ expectStatus: [201, 303] }, moved)).output).toMatchObject({
      headers: { location: '/things/1' },
    });
    await expect(ask({ expectStatus: 201 }, says(200))).rejects.toMatchObject(UNKNOWN);
  });

  it('to an unreachable host was not made', async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const making = request.perform(request.parse({ method: 'POST', url: nobody }), performanceAt(nobody));
    await expect(making).rejects.toMatchObject(LATER);
  });

  it('never quotes the target in a failure', async () => {
    for (const [, how] of ANSWERS) {
      const failure = (await ask({}, how).catch((error: unknown) => error)) as Error;
      expect(`${failure.message} ${String(failure.cause)}`).not.toContain('CANARY');
    }
  });

  it('has its mark in the target’s header for an idempotency key', async () => {
    await ask({ idempotencyHeader: 'idempotency-key' }, says(200));
    expect(received[0]?.headers['idempotency-key']).toBe(MARK);
    await ask({}, says(200));
    expect(received[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  it('that reads is its own operation, which can be repeated', async () => {
    expect([request.effect, get.effect]).toEqual(['opaque', 'read']);
    received = [];
    answering = says(200, '[1]', JSON_TYPE);
    const result = await get.perform(get.parse({ url: `${ownUrl}/list?page=2` }), performanceAt(ownUrl));
    expect(result.output).toMatchObject({ status: 200, body: [1] });
    expect(received).toMatchObject([{ method: 'GET', path: '/list?page=2' }]);
  });
});

describe('an answer', () => {
  const outputFor = async (body: string, headers: Record<string, string>) =>
    (await ask({}, says(200, body, headers))).output as { body: unknown; truncated?: true };

  it.each([
    ['text', 'x'.repeat(200_000), {}],
    ['JSON', JSON.stringify('x'.repeat(200_000)), JSON_TYPE],
    ['text that JSON spells out', '\u0001'.repeat(60_000), {}],
  ])('longer than a step can store is shortened and marked as truncated: %s', async (_what, body, headers) => {
    const output = await outputFor(body, headers);
    expect(output).toMatchObject({ truncated: true, body: body.slice(0, 8_000) });
    expect(Buffer.byteLength(JSON.stringify(output))).toBeLessThan(64 * 1024);
  });

  it('that fits is complete', async () => {
    const items = Array.from({ length: 1_000 }, (_, index) => index);
    expect(await outputFor(JSON.stringify(items), JSON_TYPE)).not.toHaveProperty('truncated');
  });

  it('replaces lone surrogates, which cannot be hashed', async () => {
    expect((await outputFor('{"a":"\\ud83d"}', JSON_TYPE)).body).toEqual({ a: '\ufffd' });
  });
});

describe('the credential', () => {
  const SECRET = 'CANARY-token/with"quote';
  const credentialFor = (host: string) => ({
    hosts: { [host]: { headers: { Authorization: `Bearer ${SECRET}`, 'X-Api-Key': 'CANARY-key-2' } } },
  });
  const echo: Answering = ({ headers }, response) => {
    const seen = { ...headers, bare: SECRET };
    response.writeHead(200, { ...JSON_TYPE, location: `/${headers['x-api-key']}` }).end(JSON.stringify(seen));
  };

  it('is sent to its host and shown nowhere, not even if the target echoes it', async () => {
    const result = await ask({ body: {} }, echo, credentialFor(new URL(ownUrl).host));
    expect(received[0]?.headers).toMatchObject({ authorization: `Bearer ${SECRET}`, 'x-api-key': 'CANARY-key-2' });
    expect(JSON.stringify(result)).not.toContain('CANARY');
    expect(result.output).toMatchObject({ body: { bare: '[secret]' } });
  });

  it('of another host is not sent', async () => {
    await ask({}, echo, credentialFor('api.example.com'));
    expect(JSON.stringify(received)).not.toContain('CANARY');
  });

  it('in another form is refused with the right form, before anything is sent', async () => {
    const failure = { code: 'CONNECTION_MISSING', message: expect.stringContaining('"hosts"') };
    await expect(ask({}, echo, { token: 'CANARY' })).rejects.toMatchObject(failure);
    const elsewhere = { hosts: { [new URL(ownUrl).host]: { headers: { Host: 'localhost' } } } };
    await expect(ask({}, echo, elsewhere)).rejects.toMatchObject(failure);
    expect(received).toEqual([]);
  });
});

describe('input', () => {
  it.each([
    ['no method', { method: undefined }],
    ['a method of its own', { method: 'TRACE' }],
    ['a body on a GET', { method: 'GET', body: {} }],
    ['a credential in the workflow', { headers: { authorization: 'Bearer x' } }],
    ['a cookie', { headers: { cookie: 'x' } }],
    ['another host than the URL', { headers: { host: 'localhost' } }],
    ['framing', { headers: { 'transfer-encoding': 'chunked' } }],
    ['a credential in capitals', { headers: { Authorization: 'Bearer x' } }],
    ['a header of two words', { headers: { 'x kind': 'x' } }],
    ['a line break in a header', { headers: { 'x-kind': 'x\r\nhost: localhost' } }],
    ['too many headers', { headers: Object.fromEntries(Array.from({ length: 31 }, (_, n) => [`x-${n}`, 'x'])) }],
    ['a key in the header of the host', { idempotencyHeader: 'host' }],
    ['too large a body', { body: 'x'.repeat(64 * 1024 + 1) }],
    ['a status that does not exist', { expectStatus: 99 }],
    ['a URL of another form', { url: 'http://2130706433/' }],
    ['an unknown field', { followRedirects: true }],
  ])('with %s is refused', (_what, input) => {
    const whole = { method: 'POST', url: 'https://api.example.com/', ...input };
    expect(() => request.parse(whole)).toThrow(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });
});

describe('a proposal', () => {
  const proposalOf = (input: object) =>
    request.propose(request.parse({ method: 'POST', url: 'https://api.example.com/v1?q=CANARY', ...input }), 'acme');

  it('shows what will be sent, without its values in target and key', () => {
    const { target, fields, key } = proposalOf({ body: { note: 'CANARY' } });
    expect(target).toMatch(/^http:https:\/\/api\.example\.com:[0-9a-f]{16}$/);
    expect(fields).toEqual({ method: 'POST', url: 'https://api.example.com/v1?q=CANARY', body: { note: 'CANARY' } });
    expect(`${target} ${key}`).not.toContain('CANARY');
  });

  it('has another target for another path, query, scheme or host, and none shows a credential', () => {
    const urls = ['https://api.example.com/CANARY', 'https://api.example.com/', 'https://other.example.com/CANARY'];
    urls.push('https://api.example.com/?id=CANARY', 'https://api.example.com/?id=CANARY2');
    const targets = urls.map((url) => proposalOf({ url }).target);
    expect(new Set(targets).size).toBe(urls.length);
    expect(targets.join()).not.toContain('CANARY');
  });

  it('has another key for anything that differs', () => {
    const differing = [
      {},
      { method: 'PUT' },
      { body: 1 },
      { headers: { 'x-a': '1' } },
      { url: 'https://api.example.com/' },
    ];
    expect(new Set(differing.map((input) => proposalOf(input).key)).size).toBe(differing.length);
  });
});

describe('a name that changes its address', () => {
  it('is contacted at the checked address and resolved once', async () => {
    const sent: SentRequest[] = [];
    const addresses = [['1.1.1.1'], ['127.0.0.1']];
    const { request: rebound } = httpOperations({
      resolve: async () => (addresses.shift() ?? []).map(addressOf),
      send: async (each) => {
        sent.push(each);
        return { status: 200, headers: {}, text: '', truncated: false };
      },
    });
    const access = { baseUrl: '', instance: 'acme', credential: undefined, allowedHosts: ['api.example.com'] };
    const input = rebound.parse({ method: 'POST', url: 'https://api.example.com/' });
    await rebound.perform(input, { access, mark: MARK, openSince: STORY_BEGINS_AT });
    expect(sent.map(({ destination }) => destination.addresses)).toEqual([[{ address: '1.1.1.1', family: 4 }]]);
    expect(addresses).toHaveLength(1);
  });

  /** `.invalid` never has an address: a second lookup fails. */
  const pinned = (url: string): SentRequest => ({
    destination: { url: new URL(url), host: new URL(url).host, addresses: [addressOf('127.0.0.1')] },
    method: 'GET',
    headers: {},
    body: undefined,
  });

  it('is contacted at the checked address with its own host name', async () => {
    received = [];
    answering = says(200, 'here');
    const { port } = new URL(ownUrl);
    expect(await sendToChecked(pinned(`http://api.invalid:${port}/x`))).toMatchObject({ status: 200, text: 'here' });
    expect(received[0]?.headers.host).toBe(`api.invalid:${port}`);
  });

  it('must have a certificate for its own name', async () => {
    const names: string[] = [];
    const tls = createTlsServer({
      SNICallback: (name, refuse) => {
        names.push(name);
        refuse(new Error('no certificate here'));
      },
    });
    await new Promise<void>((listening) => tls.listen(0, '127.0.0.1', listening));
    const { port } = tls.address() as AddressInfo;
    await expect(sendToChecked(pinned(`https://api.invalid:${port}/x`))).rejects.toMatchObject(LATER);
    expect(names).toEqual(['api.invalid']);
    tls.close();
  });
});
