import type { TrustedKey } from './verify/trusted-keys.ts';

/** Write-once storage: the first content under a key stays, whoever writes it again. */
export interface EvidenceStore {
  /** Returns whether this call wrote it; false means the key was taken and nothing changed. */
  putOnce(key: string, content: Buffer, contentType: string): Promise<boolean>;
  get(key: string): Promise<Buffer>;
}

/** Signs with a key that never leaves its keeper. */
export interface Signer {
  /** What the signature will name its key by: known before signing, so that the statement can say it too. */
  readonly keyId: string;
  sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }>;
  /** The keys that this stage signs with, or did: a signature by any other is nobody's. */
  trusted(): Promise<TrustedKey[]>;
}
