import type { TrustedKey } from './verify/trusted-keys.ts';

/** Write-once storage: the first content of a key stays. */
export interface EvidenceStore {
  /** False if the key exists; then nothing is written. */
  putOnce(key: string, content: Buffer, contentType: string): Promise<boolean>;
  /** The whole object, or a part of it. */
  get(key: string, part?: ObjectPart): Promise<Buffer>;
}

/** Some bytes of an object. */
export interface ObjectPart {
  offset: number;
  sizeBytes: number;
}

/** Storage whose objects may have been deleted. */
export interface FindingStore {
  /** Undefined if there is no such object. */
  find(key: string, part?: ObjectPart): Promise<Buffer | undefined>;
}

/** Signs with a key that never leaves KMS. */
export interface Signer {
  /** The key id of the signature, known in advance so that the statement can contain it. */
  readonly keyId: string;
  sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }>;
  /** All keys that this stage signs or signed with. */
  trusted(): Promise<TrustedKey[]>;
}
