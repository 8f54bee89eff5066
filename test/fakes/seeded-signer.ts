import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { Signer } from '../../lambdas/evidence/evidence-store.ts';
import { type TrustedKey, trustedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';

/** The bytes before the 32 secret bytes of an Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8_ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A real Ed25519 key, the same for the same seed. */
export class SeededSigner implements Signer {
  readonly keyId: string;
  readonly publicKey: KeyObject;
  readonly #privateKey: KeyObject;

  /** The keys that signed before it. */
  readonly #former: readonly KeyObject[];

  constructor(seed = 'evidence', former: readonly KeyObject[] = []) {
    this.#former = former;
    const secret = createHash('sha256').update(seed).digest();
    const key = Buffer.concat([PKCS8_ED25519_PREFIX, secret]);
    this.keyId = `test-key/${seed}`;
    this.#privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
    this.publicKey = createPublicKey(this.#privateKey);
  }

  async trusted(): Promise<TrustedKey[]> {
    return [...this.#former, this.publicKey].map(trustedKey);
  }

  async sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }> {
    return { keyId: this.keyId, signature: sign(null, message, this.#privateKey) };
  }
}
