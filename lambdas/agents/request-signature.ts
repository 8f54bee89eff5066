import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/**
 * Requests of agents are signed with the agent's Ed25519 key as HTTP Message Signatures (RFC 9421). The agent program
 * signs and the agent API verifies with this file. It accepts exactly one form, which is a part of what the RFC allows:
 *
 *     Content-Digest: sha-256=:…:
 *     Signature-Input: agent=("@method" "@path" "content-digest");created=1618884473;keyid="…";nonce="…";alg="ed25519"
 *     Signature: agent=:…:
 *
 * A request with a query also covers "@query". Host names are not covered, because proxies change them: ids of agents
 * are unique across stages, so a request to one stage is signed with a key that no other stage knows.
 */
const LABEL = 'agent';
/** How far `created` may be from the server's time. Agents correct their clock by the server's time. */
export const SIGNATURE_VALID_MS = 60_000;

export interface RequestToSign {
  method: string;
  /** The path without the query, as it is sent. */
  path: string;
  /** The query without "?", as it is sent. */
  query?: string;
  body: string | Uint8Array;
}

export interface SignatureParameters {
  /** The id of the agent; for enrolment the thumbprint of its key. */
  keyId: string;
  nonce: string;
  /** In milliseconds; the signature has seconds. */
  created: number;
}

/** The headers that sign a request. */
export function signRequest(
  request: RequestToSign,
  { keyId, nonce, created }: SignatureParameters,
  privateKey: KeyObject,
): Record<'content-digest' | 'signature-input' | 'signature', string> {
  const components = signedComponents(request, contentDigest(request.body));
  const names = components.map(([name]) => `"${name}"`).join(' ');
  const seconds = Math.floor(created / 1000);
  const parameters = `(${names});created=${seconds};keyid="${keyId}";nonce="${nonce}";alg="ed25519"`;
  const signature = sign(null, Buffer.from(signatureBase(components, parameters)), privateKey);
  return {
    'content-digest': contentDigest(request.body),
    'signature-input': `${LABEL}=${parameters}`,
    signature: `${LABEL}=:${signature.toString('base64')}:`,
  };
}

export type SignatureRefusal =
  /** A header is absent or has another form. */
  | 'SIGNATURE_MALFORMED'
  /** The signature is of another request, or of another key. */
  | 'SIGNATURE_INVALID'
  /** `created` is more than a minute from the server's time: an old request, or a wrong clock. */
  | 'SIGNATURE_EXPIRED';

export type VerifiedRequest =
  | { valid: true; keyId: string; nonce: string; created: number }
  | { valid: false; code: SignatureRefusal; message: string };

type Headers = Readonly<Record<string, string | undefined>>;

/**
 * Checks the signature of a request. `findKey` returns the public key (SPKI) of the key id, or undefined. The caller
 * decides about the nonce, because only it knows which ones were used.
 */
export async function verifyRequest(
  request: RequestToSign & { headers: Headers },
  nowMs: number,
  findKey: (keyId: string) => Promise<KeyObject | undefined> | KeyObject | undefined,
): Promise<VerifiedRequest> {
  const { headers } = request;
  const input = parseSignatureInput(headers['signature-input'] ?? '');
  const signature = /^agent=:([A-Za-z0-9+/]{86}==):$/.exec(headers.signature ?? '')?.[1];
  if (input === undefined || signature === undefined) {
    return refuse('SIGNATURE_MALFORMED', 'sign the request with Signature-Input and Signature (RFC 9421, Ed25519)');
  }
  const { parameters, names, keyId, nonce, created } = input;
  const components = signedComponents(request, headers['content-digest'] ?? '');
  if (names !== components.map(([name]) => `"${name}"`).join(' ')) {
    return refuse('SIGNATURE_MALFORMED', 'the signature must cover "@method", "@path", "content-digest" and the query');
  }
  if (headers['content-digest'] !== contentDigest(request.body)) {
    return refuse('SIGNATURE_INVALID', 'the header Content-Digest is not the SHA-256 digest of the body');
  }
  const key = await findKey(keyId);
  const base = Buffer.from(signatureBase(components, parameters));
  // A request for an unknown key takes as long as one for a known key, so the response time does not show which exist.
  const matches = verify(null, base, key ?? NOBODY, Buffer.from(signature, 'base64'));
  if (key === undefined || !matches) {
    const advice = 'the agent may have been removed; enrol it again with another --dir';
    return refuse('SIGNATURE_INVALID', `the signature does not match the key of this agent: ${advice}`);
  }
  if (Math.abs(nowMs - created) > SIGNATURE_VALID_MS) {
    return refuse('SIGNATURE_EXPIRED', 'the signature was created more than 60 s from server_time; correct the clock');
  }
  return { valid: true, keyId, nonce, created };
}

/** An Ed25519 public key from base64 SPKI, or undefined if it is something else. */
export function parsePublicKey(spkiBase64: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(spkiBase64, 'base64'), format: 'der', type: 'spki' });
    return key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}

/** The key id of a request that enrols a key: SHA-256 of its SPKI, base64url. */
export const keyThumbprint = (publicKey: KeyObject): string =>
  createHash('sha256')
    .update(publicKey.export({ format: 'der', type: 'spki' }))
    .digest('base64url');

/**
 * A nonce is the id of the process and a counter that grows with each request. The runtime keeps the last one of each
 * agent, so it needs no list of used nonces.
 */
export const formatNonce = (bootId: string, counter: number): string => `${bootId}.${counter}`;

export function parseNonce(nonce: string): { bootId: string; counter: number } | undefined {
  const [, bootId, counter] = /^([A-Za-z0-9_-]{8,64})\.(\d{1,15})$/.exec(nonce) ?? [];
  return bootId === undefined || counter === undefined ? undefined : { bootId, counter: Number(counter) };
}

type Component = readonly [name: string, value: string];

/** RFC 9421, section 2.5. */
export const signatureBase = (components: readonly Component[], parameters: string): string =>
  [...components, ['@signature-params', parameters] as const].map(([name, value]) => `"${name}": ${value}`).join('\n');

const signedComponents = ({ method, path, query }: RequestToSign, digest: string): Component[] => [
  ['@method', method.toUpperCase()],
  ['@path', path],
  ...(query ? [['@query', `?${query}`] as const] : []),
  ['content-digest', digest],
];

/** RFC 9530. */
const contentDigest = (body: string | Uint8Array): string =>
  `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;

const SIGNATURE_INPUT =
  /^agent=(\(("[a-z@-]+"(?: "[a-z@-]+")*)\);created=(\d{1,12});keyid="([A-Za-z0-9_.:-]{1,200})";nonce="([A-Za-z0-9_.-]{1,100})";alg="ed25519")$/;

function parseSignatureInput(header: string) {
  const [, parameters, names, created, keyId, nonce] = SIGNATURE_INPUT.exec(header) ?? [];
  if (!parameters || !names || !created || !keyId || !nonce) return undefined;
  return { parameters, names, keyId, nonce, created: Number(created) * 1000 };
}

const refuse = (code: SignatureRefusal, message: string): VerifiedRequest => ({ valid: false, code, message });

/** A public key whose private key was not stored. */
const NOBODY = createPublicKey({
  key: { kty: 'OKP', crv: 'Ed25519', x: 'PI7ij4_XbIXHcUL9ejST9Rj8LTmOt6VVNw0sTPhq5OU' },
  format: 'jwk',
});
