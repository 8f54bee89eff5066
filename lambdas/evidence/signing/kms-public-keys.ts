import { GetPublicKeyCommand, type KMSClient } from '@aws-sdk/client-kms';
import type { PublicKeys } from './published-keys.ts';

export class KmsPublicKeys implements PublicKeys {
  readonly #client: KMSClient;

  constructor(client: KMSClient) {
    this.#client = client;
  }

  async spki(keyId: string): Promise<Buffer> {
    const { PublicKey } = await this.#client.send(new GetPublicKeyCommand({ KeyId: keyId }));
    if (!PublicKey) throw new Error(`KMS answered without the public key of ${keyId}`);
    return Buffer.from(PublicKey);
  }
}
