import type { SigningKey } from '../../agents/protocol.ts';
import { type EvidenceKey, type PublicKeys, stageKeys } from '../../evidence/signing/published-keys.ts';

/** The keys that sign assignments: the evidence key that is not retired. Agents pin them. */
export async function assignmentKeys(keys: readonly EvidenceKey[], held: PublicKeys): Promise<SigningKey[]> {
  const current = keys.filter(({ validUntil }) => validUntil === null);
  return (await stageKeys(current, held)).map(({ key, algorithm, published }) => ({
    key_id: published.keyId,
    algorithm: algorithm === 'Ed25519' ? 'ed25519' : 'p256',
    public_key: key.export({ type: 'spki', format: 'der' }).toString('base64'),
  }));
}
