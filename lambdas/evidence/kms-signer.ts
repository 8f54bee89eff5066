import { type KMSClient, SignCommand } from '@aws-sdk/client-kms';
import type { Signer } from './evidence-store.ts';

export class KmsSigner implements Signer {
  readonly #client: KMSClient;
  readonly #keyArn: string;

  constructor(client: KMSClient, keyArn: string) {
    this.#client = client;
    this.#keyArn = keyArn;
  }

  async sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }> {
    const { Signature, KeyId } = await this.#client.send(
      new SignCommand({
        KeyId: this.#keyArn,
        Message: message,
        MessageType: 'RAW',
        SigningAlgorithm: 'ED25519_SHA_512',
      }),
    );
    if (!Signature || !KeyId) throw new Error('KMS answered without a signature');
    return { keyId: KeyId, signature: Buffer.from(Signature) };
  }
}
