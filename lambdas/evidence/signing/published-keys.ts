import { createPublicKey } from 'node:crypto';
import { type PublishedKey, type TrustedKey, trustedKey } from '../verify/trusted-keys.ts';

/** A key that signs evidence, or did so until a day. */
export type EvidenceKey = Pick<PublishedKey, 'keyId' | 'validUntil'>;

export interface PublicKeys {
  /** SubjectPublicKeyInfo of X.509, in DER. */
  spki(keyId: string): Promise<Buffer>;
}

type StageKey = TrustedKey & { published: EvidenceKey };

/** The current key and all earlier keys, which verify older bundles. */
export function stageKeys(keys: readonly EvidenceKey[], held: PublicKeys): Promise<StageKey[]> {
  return Promise.all(
    keys.map(async (published) => {
      const key = createPublicKey({ key: await held.spki(published.keyId), format: 'der', type: 'spki' });
      return { ...trustedKey(key), published };
    }),
  );
}

export async function publishedKeys(keys: readonly EvidenceKey[], held: PublicKeys): Promise<{ keys: PublishedKey[] }> {
  const published = (await stageKeys(keys, held)).map(asPublished);
  return { keys: published };
}

export function asPublished({ key, algorithm, fingerprint, published }: StageKey): PublishedKey {
  return { ...published, algorithm, fingerprint, pem: String(key.export({ type: 'spki', format: 'pem' })) };
}
