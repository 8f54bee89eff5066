import { type KMSClient, SignCommand } from '@aws-sdk/client-kms';
import type { SigningAlgorithm } from './environment.ts';
import type { Signer } from './evidence-store.ts';

export class KmsSigner implements Signer {
  readonly keyId: string;
  readonly #client: KMSClient;
  readonly #algorithm: SigningAlgorithm;

  constructor(client: KMSClient, keyArn: string, algorithm: SigningAlgorithm = 'ED25519_SHA_512') {
    this.#client = client;
    this.keyId = keyArn;
    this.#algorithm = algorithm;
  }

  async sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }> {
    const { Signature, KeyId } = await this.#client.send(
      new SignCommand({ KeyId: this.keyId, Message: message, MessageType: 'RAW', SigningAlgorithm: this.#algorithm }),
    );
    if (!Signature || !KeyId) throw new Error('KMS answered without a signature');
    return { keyId: KeyId, signature: Buffer.from(Signature) };
  }
}
