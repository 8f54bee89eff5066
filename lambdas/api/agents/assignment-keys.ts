import type { SigningKey } from '../../agents/protocol.ts';
import { type EvidenceKey, type PublicKeys, stageKeys } from '../../evidence/signing/published-keys.ts';

/** The key that signs assignments: the evidence key that is not retired. Agents pin it. */
export const assignmentKeys = (keys: readonly EvidenceKey[], held: PublicKeys): Promise<SigningKey[]> =>
  signingKeys(
    keys.filter(({ validUntil }) => validUntil === null),
    held,
  );

/** All keys, as agents know them, oldest first. */
export async function signingKeys(keys: readonly EvidenceKey[], held: PublicKeys): Promise<SigningKey[]> {
  return (await stageKeys(keys, held)).map(({ key, algorithm, published }) => ({
    key_id: published.keyId,
    algorithm: algorithm === 'Ed25519' ? 'ed25519' : 'p256',
    public_key: key.export({ type: 'spki', format: 'der' }).toString('base64'),
  }));
}
