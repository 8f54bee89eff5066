import { BrowserBuffer } from './buffer.ts';
import { isDer, rawSignature } from './ecdsa-signature.ts';
import { sha256 } from './sha256.ts';

/** The parts of `node:crypto` that the verifier uses. The build of the console replaces `node:crypto` by this file. */
export function createHash(_algorithm: 'sha256') {
  const parts: Uint8Array[] = [];
  const hash = {
    update(data: string | Uint8Array) {
      parts.push(typeof data === 'string' ? new TextEncoder().encode(data) : data);
      return hash;
    },
    digest(encoding?: 'hex') {
      const digest = new BrowserBuffer(sha256(BrowserBuffer.concat(parts)));
      return encoding === undefined ? digest : digest.toString(encoding);
    },
  };
  return hash;
}

export const hash = (_algorithm: 'sha256', data: string | Uint8Array, encoding: 'hex') =>
  createHash('sha256').update(data).digest(encoding);

const hashText = (data: Uint8Array): string => new BrowserBuffer(sha256(data)).toString('hex');

/** What stands before the key in SPKI bytes. */
const ED25519 = '302a300506032b6570032100';
const P256 = '3059301306072a8648ce3d020106082a8648ce3d030107034200';

interface BrowserKey {
  asymmetricKeyType: 'ed25519' | 'ec' | undefined;
  asymmetricKeyDetails: { namedCurve?: string };
  export(): BrowserBuffer;
}

export function createPublicKey(pem: string): BrowserKey {
  const spki = BrowserBuffer.from(pem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  const hex = spki.toString('hex');
  const type = hex.startsWith(ED25519) ? 'ed25519' : hex.startsWith(P256) ? 'ec' : undefined;
  return {
    asymmetricKeyType: type,
    asymmetricKeyDetails: type === 'ec' ? { namedCurve: 'prime256v1' } : {},
    export: () => spki,
  };
}

/** Results of WebCrypto, which has only an asynchronous interface, by key, data and signature. */
const checked = new Map<string, boolean>();
const keyOf = (key: BrowserKey, data: Uint8Array, signature: Uint8Array): string =>
  [key.export(), data, signature].map(hashText).join(' ');

/** Checks a signature with WebCrypto, so that `verify` knows the result. */
export async function checkSignature(key: BrowserKey, data: Uint8Array, signature: Uint8Array): Promise<void> {
  checked.set(keyOf(key, data, signature), await isValid(key, data, signature));
}

async function isValid(key: BrowserKey, data: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const isEd25519 = key.asymmetricKeyType === 'ed25519';
  const algorithm = isEd25519 ? { name: 'Ed25519' } : { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  if (!isEd25519 && !isDer(signature)) return false;
  const imported = await crypto.subtle.importKey('spki', key.export(), algorithm, false, ['verify']);
  const raw = isEd25519 ? signature : rawSignature(signature);
  return crypto.subtle.verify(algorithm, imported, raw.slice(), data.slice());
}

/** Never guesses: a signature that nobody checked is an error. */
export function verify(_hash: string | null, data: Uint8Array, key: BrowserKey, signature: Uint8Array): boolean {
  const result = checked.get(keyOf(key, data, signature));
  if (result === undefined) throw new Error('this signature was not checked before');
  return result;
}
