import { type KeyObject, verify } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Signer } from '../../lambdas/evidence/evidence-store.ts';

export interface OpenSigner {
  signer: Signer;
  /** As published for auditors. */
  publicKey: KeyObject;
  keyId: string;
  close(): Promise<void>;
}

export function describeSignerContract(name: string, open: () => Promise<OpenSigner>): void {
  describe(`${name} as the signer`, () => {
    let opened: OpenSigner;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    const message = Buffer.from('DSSEv1 28 application/vnd.in-toto+json 2 {}');

    it('makes signatures that anyone with the public key can verify offline', async () => {
      const { signature } = await opened.signer.sign(message);
      expect(verify(null, message, opened.publicKey, signature)).toBe(true);
      expect(verify(null, Buffer.concat([message, Buffer.from(' ')]), opened.publicKey, signature)).toBe(false);
    });

    it('names the key', async () => {
      expect((await opened.signer.sign(message)).keyId).toBe(opened.keyId);
    });

    it('signs the same message the same way, so that sealing again gives the same envelope', async () => {
      expect(await opened.signer.sign(message)).toEqual(await opened.signer.sign(message));
    });
  });
}
