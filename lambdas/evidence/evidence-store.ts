import type { TrustedKey } from './verify/trusted-keys.ts';

/** Write-once storage: the first content of a key stays. */
export interface EvidenceStore {
  /** False if the key exists; then nothing is written. */
  putOnce(key: string, content: Buffer, contentType: string): Promise<boolean>;
  get(key: string): Promise<Buffer>;
}

/** Signs with a key that never leaves KMS. */
export interface Signer {
  /** The key id of the signature, known in advance so that the statement can contain it. */
  readonly keyId: string;
  sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }>;
  /** All keys that this stage signs or signed with. */
  trusted(): Promise<TrustedKey[]>;
}
