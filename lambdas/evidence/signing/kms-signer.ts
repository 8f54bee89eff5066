import { GetPublicKeyCommand, type KMSClient, SignCommand } from '@aws-sdk/client-kms';
import type { SigningAlgorithm } from '../environment.ts';
import type { Signer } from '../evidence-store.ts';
import type { TrustedKey } from '../verify/trusted-keys.ts';
import { type EvidenceKey, type PublicKeys, stageKeys } from './published-keys.ts';

interface StageSigning {
  SIGNING_KEY_ARN: string;
  SIGNING_ALGORITHM: SigningAlgorithm;
  EVIDENCE_KEYS: readonly EvidenceKey[];
}

export class KmsSigner implements Signer {
  readonly keyId: string;
  readonly #client: KMSClient;
  readonly #algorithm: SigningAlgorithm;
  readonly #evidenceKeys: readonly EvidenceKey[];

  constructor(client: KMSClient, { SIGNING_KEY_ARN, SIGNING_ALGORITHM, EVIDENCE_KEYS }: StageSigning) {
    this.#client = client;
    this.keyId = SIGNING_KEY_ARN;
    this.#algorithm = SIGNING_ALGORITHM;
    this.#evidenceKeys = EVIDENCE_KEYS;
  }

  async sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }> {
    const { Signature, KeyId } = await this.#client.send(
      new SignCommand({ KeyId: this.keyId, Message: message, MessageType: 'RAW', SigningAlgorithm: this.#algorithm }),
    );
    if (!Signature || !KeyId) throw new Error('KMS responded without a signature');
    return { keyId: KeyId, signature: Buffer.from(Signature) };
  }

  trusted(): Promise<TrustedKey[]> {
    return stageKeys(this.#evidenceKeys, new KmsPublicKeys(this.#client));
  }
}

export class KmsPublicKeys implements PublicKeys {
  readonly #client: KMSClient;

  constructor(client: KMSClient) {
    this.#client = client;
  }

  async spki(keyId: string): Promise<Buffer> {
    const { PublicKey } = await this.#client.send(new GetPublicKeyCommand({ KeyId: keyId }));
    if (!PublicKey) throw new Error(`KMS responded without the public key of ${keyId}`);
    return Buffer.from(PublicKey);
  }
}
