import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import { describe, expect, it } from 'vitest';
import {
  formatNonce,
  keyThumbprint,
  parseNonce,
  parsePublicKey,
  type RequestToSign,
  SIGNATURE_VALID_MS,
  signatureBase,
  signRequest,
  verifyRequest,
} from '../../lambdas/agents/request-signature.ts';

// RFC 9421, B.1.4 (test-key-ed25519) and B.2.6.
const RFC_PUBLIC_KEY = 'MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=';
const RFC_PRIVATE_KEY = 'MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF';
const RFC_COMPONENTS = [
  ['date', 'Tue, 20 Apr 2021 02:07:55 GMT'],
  ['@method', 'POST'],
  ['@path', '/foo'],
  ['@authority', 'example.com'],
  ['content-type', 'application/json'],
  ['content-length', '18'],
] as const;
const RFC_PARAMETERS =
  '("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"';
const RFC_SIGNATURE = 'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==';

const publicKey = createPublicKey({ key: Buffer.from(RFC_PUBLIC_KEY, 'base64'), format: 'der', type: 'spki' });
const privateKey = createPrivateKey({ key: Buffer.from(RFC_PRIVATE_KEY, 'base64'), format: 'der', type: 'pkcs8' });

const NOW = 1_618_884_473_000;
const PARAMETERS = { keyId: 'agent_1', nonce: 'boot-0001.7', created: NOW };
const REQUEST: RequestToSign = { method: 'POST', path: '/api/v1/agent/heartbeat', body: '{"hello": "world"}' };

const signed = (request = REQUEST, parameters = PARAMETERS, key = privateKey) => ({
  ...request,
  headers: signRequest(request, parameters, key),
});
const check = (request: Parameters<typeof verifyRequest>[0], now = NOW) =>
  verifyRequest(request, now, (keyId) => (keyId === 'agent_1' ? publicKey : undefined));

describe('the example of RFC 9421 for Ed25519', () => {
  const base = Buffer.from(signatureBase(RFC_COMPONENTS, RFC_PARAMETERS));

  it('has the signature that the RFC prints', () => {
    expect(sign(null, base, privateKey).toString('base64')).toBe(RFC_SIGNATURE);
    expect(verify(null, base, publicKey, Buffer.from(RFC_SIGNATURE, 'base64'))).toBe(true);
  });

  it('has the digest that the RFC prints for its body', () => {
    expect(signed().headers['content-digest']).toBe('sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:');
  });
});

describe('another implementation of RFC 9421', () => {
  const url = (request: RequestToSign) =>
    `https://api.example.com${request.path}${request.query ? `?${request.query}` : ''}`;

  it.each([REQUEST, { ...REQUEST, query: 'since=5&limit=10' }])('verifies our signatures', async (request) => {
    const verdict = await httpbis.verifyMessage(
      {
        keyLookup: async () => ({
          id: 'agent_1',
          algs: ['ed25519'],
          verify: async (data, signature) => verify(null, data, publicKey, signature),
        }),
        notAfter: new Date(NOW),
        requiredParams: ['created', 'nonce', 'keyid', 'alg'],
        requiredFields: ['@method', '@path', 'content-digest'],
      },
      { method: request.method, url: url(request), headers: signed(request).headers },
    );
    expect(verdict).toBe(true);
  });

  it.each([REQUEST, { ...REQUEST, query: 'since=5&limit=10' }])('signs requests that we accept', async (request) => {
    const digest = signed(request).headers['content-digest'];
    const message = await httpbis.signMessage(
      {
        name: 'agent',
        key: { id: 'agent_1', alg: 'ed25519', sign: async (data) => sign(null, data, privateKey) },
        params: ['created', 'keyid', 'nonce', 'alg'],
        fields: ['@method', '@path', ...(request.query ? ['@query'] : []), 'content-digest'],
        paramValues: { created: new Date(NOW), nonce: PARAMETERS.nonce },
      },
      { method: request.method, url: url(request), headers: { 'content-digest': digest } },
    );
    const headers = Object.fromEntries(
      Object.entries(message.headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
    );
    expect(await check({ ...request, headers })).toMatchObject({ valid: true, keyId: 'agent_1' });
  });
});

describe('a signed request', () => {
  it('is accepted with its key id, nonce and time', async () => {
    expect(await check(signed())).toEqual({ valid: true, ...PARAMETERS });
  });

  it('is signed as bytes, so text that is not UTF-8 is not changed on the way', async () => {
    const request = { ...REQUEST, body: Uint8Array.of(0xff, 0x00, 0xfe) };
    expect(await check(signed(request))).toMatchObject({ valid: true });
  });

  it.each([
    ['another body', { body: '{"hello": "w0rld"}' }],
    ['another path', { path: '/api/v1/agent/register' }],
    ['another method', { method: 'PUT' }],
  ])('is refused with %s', async (_, change) => {
    expect(await check({ ...signed(), ...change })).toMatchObject({ valid: false, code: 'SIGNATURE_INVALID' });
  });

  it('is refused with a query that was not signed, and without the query that was', async () => {
    expect(await check({ ...signed(), query: 'all=true' })).toMatchObject({ code: 'SIGNATURE_MALFORMED' });
    const withQuery = signed({ ...REQUEST, query: 'all=true' });
    expect(await check({ ...withQuery, query: '' })).toMatchObject({ code: 'SIGNATURE_MALFORMED' });
    expect(await check({ ...withQuery, query: 'all=false' })).toMatchObject({ code: 'SIGNATURE_INVALID' });
  });

  it('is refused if another key signed it, or if nobody knows the key', async () => {
    const other = generateKeyPairSync('ed25519').privateKey;
    expect(await check(signed(REQUEST, PARAMETERS, other))).toMatchObject({ code: 'SIGNATURE_INVALID' });
    const unknown = signed(REQUEST, { ...PARAMETERS, keyId: 'agent_2' });
    expect(await check(unknown)).toMatchObject({ code: 'SIGNATURE_INVALID' });
  });

  it('is refused when its key id, nonce or time was changed', async () => {
    const request = signed();
    for (const [from, to] of [
      ['boot-0001.7', 'boot-0001.8'],
      ['created=1618884473', 'created=1618884474'],
    ] as const) {
      const headers = { ...request.headers, 'signature-input': request.headers['signature-input'].replace(from, to) };
      expect(await check({ ...request, headers })).toMatchObject({ valid: false, code: 'SIGNATURE_INVALID' });
    }
  });

  it('is valid for a minute before and after its time, and says so afterwards', async () => {
    expect(await check(signed(), NOW + SIGNATURE_VALID_MS)).toMatchObject({ valid: true });
    expect(await check(signed(), NOW - SIGNATURE_VALID_MS)).toMatchObject({ valid: true });
    expect(await check(signed(), NOW + SIGNATURE_VALID_MS + 1)).toMatchObject({ code: 'SIGNATURE_EXPIRED' });
    expect(await check(signed(), NOW - SIGNATURE_VALID_MS - 1)).toMatchObject({ code: 'SIGNATURE_EXPIRED' });
  });

  it.each([
    ['no headers', {}],
    ['no digest', { 'content-digest': undefined }],
    ['two signatures', { 'signature-input': 'a=();created=1, b=();created=2' }],
    [
      'fewer covered components',
      { 'signature-input': 'agent=("@method");created=1;keyid="a";nonce="n";alg="ed25519"' },
    ],
    ['another algorithm', { 'signature-input': signed().headers['signature-input'].replace('ed25519', 'hmac-sha256') }],
    ['a signature that is too short', { signature: 'agent=:AAAA:' }],
    ['a very long header', { 'signature-input': `agent=(${'"@path" '.repeat(50_000)})` }],
  ])('is refused with %s', async (_, headers) => {
    const all = Object.keys(headers).length === 0 ? {} : { ...signed().headers, ...headers };
    expect(await check({ ...REQUEST, headers: all })).toMatchObject({ valid: false });
  });
});

describe('keys and nonces', () => {
  it('accepts Ed25519 keys only', () => {
    const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
    expect(parsePublicKey(RFC_PUBLIC_KEY)?.equals(publicKey)).toBe(true);
    expect(parsePublicKey(p256.export({ format: 'der', type: 'spki' }).toString('base64'))).toBeUndefined();
    expect(parsePublicKey('not a key')).toBeUndefined();
  });

  it('gives each key its own thumbprint', () => {
    const other = generateKeyPairSync('ed25519').publicKey;
    expect(keyThumbprint(publicKey)).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(keyThumbprint(other)).not.toBe(keyThumbprint(publicKey));
  });

  it('reads the process and the counter from a nonce', () => {
    expect(parseNonce(formatNonce('3b241101-e2bb', 42))).toEqual({ bootId: '3b241101-e2bb', counter: 42 });
    for (const nonce of ['', 'short.1', '3b241101-e2bb', '3b241101-e2bb.x', '3b241101-e2bb.-1', 'a b c d e.1']) {
      expect(parseNonce(nonce)).toBeUndefined();
    }
  });
});
