/**
 * ECDSA on P-256 over a digest that the caller computed. Node's `sign` always hashes what it is given, so this does the
 * few lines of arithmetic around OpenSSL's point multiplication (`createECDH` turns a scalar into its point).
 * Not constant in time: for the local host's throw-away keys only.
 */
import { createECDH, type KeyObject, randomBytes } from 'node:crypto';

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const SCALAR_BYTES = 32;
const DER_INTEGER = 0x02;
const DER_SEQUENCE = 0x30;

export function signDigest(digest: Buffer, key: KeyObject): Buffer {
  const secret = secretScalar(key);
  const hashed = toInteger(digest);
  for (;;) {
    const nonce = toInteger(randomBytes(SCALAR_BYTES)) % ORDER;
    if (nonce === 0n) continue;
    const r = pointX(nonce) % ORDER;
    const s = (inverse(nonce) * (hashed + r * secret)) % ORDER;
    if (r !== 0n && s !== 0n) return sequence(integer(r), integer(s));
  }
}

/** The key's owner can check u1·G + u2·Q as one multiplication, because Q = secret·G. */
export function verifyDigest(digest: Buffer, key: KeyObject, signature: Buffer): boolean {
  const parsed = parseSignature(signature);
  if (parsed === undefined) return false;
  const { r, s } = parsed;
  if (r <= 0n || r >= ORDER || s <= 0n || s >= ORDER) return false;
  const scalar = ((toInteger(digest) + r * secretScalar(key)) * inverse(s)) % ORDER;
  return scalar !== 0n && pointX(scalar) % ORDER === r;
}

function secretScalar(key: KeyObject): bigint {
  return toInteger(Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url'));
}

function pointX(scalar: bigint): bigint {
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(toBytes(scalar));
  // Uncompressed: 04, then x, then y.
  return toInteger(curve.getPublicKey().subarray(1, 1 + SCALAR_BYTES));
}

/** Extended Euclid. */
function inverse(value: bigint): bigint {
  let [a, b, x, y] = [value % ORDER, ORDER, 1n, 0n];
  while (b !== 0n) {
    const quotient = a / b;
    [a, b] = [b, a % b];
    [x, y] = [y, x - quotient * y];
  }
  return ((x % ORDER) + ORDER) % ORDER;
}

function toInteger(bytes: Buffer): bigint {
  return BigInt(`0x0${bytes.toString('hex')}`);
}

function toBytes(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(SCALAR_BYTES * 2, '0'), 'hex');
}

function integer(value: bigint): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  // A leading zero keeps the number positive.
  const positive = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes;
  return Buffer.concat([Buffer.from([DER_INTEGER, positive.length]), positive]);
}

function sequence(...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([DER_SEQUENCE, content.length]), content]);
}

function parseSignature(der: Buffer): { r: bigint; s: bigint } | undefined {
  if (der[0] !== DER_SEQUENCE || der[1] !== der.length - 2 || der[2] !== DER_INTEGER) return undefined;
  const rLength = der[3] ?? 0;
  const sAt = 4 + rLength;
  if (der[sAt] !== DER_INTEGER || sAt + 2 + (der[sAt + 1] ?? 0) !== der.length) return undefined;
  return { r: toInteger(der.subarray(4, sAt)), s: toInteger(der.subarray(sAt + 2)) };
}
