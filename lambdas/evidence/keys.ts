import { createPublicKey } from 'node:crypto';
import { type TrustedKey, trustedKey } from './dsse.ts';

/** A key that signs evidence, or did until a day. */
export interface EvidenceKey {
  keyId: string;
  /** The day (UTC) on which the next key took over; null for the one that signs. */
  validUntil: string | null;
}

export interface PublicKeys {
  /** SubjectPublicKeyInfo in DER, as X.509 has it. */
  spki(keyId: string): Promise<Buffer>;
}

/** What anyone may know of a key, in the form that programs for signatures read. */
export interface PublishedKey extends EvidenceKey, Pick<TrustedKey, 'algorithm' | 'fingerprint'> {
  pem: string;
}

/** The key that signs and all before it: a bundle stays as good as the key that signed it once. */
export async function publishedKeys(keys: readonly EvidenceKey[], held: PublicKeys): Promise<{ keys: PublishedKey[] }> {
  const published = keys.map(async (evidenceKey) => {
    const key = createPublicKey({ key: await held.spki(evidenceKey.keyId), format: 'der', type: 'spki' });
    const { algorithm, fingerprint } = trustedKey(key);
    return { ...evidenceKey, algorithm, fingerprint, pem: String(key.export({ type: 'spki', format: 'pem' })) };
  });
  return { keys: await Promise.all(published) };
}
