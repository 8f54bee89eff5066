import * as z from 'zod';
import { canonicalJson, sha256Hex } from './canonical-json.ts';

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a sha256 in hexadecimal');

/** Evidence shows a digest instead of a value. A person who has the value can prove that it is the original. */
export interface Digest {
  sha256: string;
  bytes: number;
}

/** Hash and size of the canonical form (RFC 8785) of a JSON value. */
export const digestOf = (value: unknown): Digest => textDigest(canonicalJson(value ?? null));

/** Hash and size of the UTF-8 bytes of a text, as `sha256sum` and `wc -c` compute them. */
export function textDigest(text: string): Digest {
  return { sha256: sha256Hex(text), bytes: Buffer.byteLength(text) };
}
