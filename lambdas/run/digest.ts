import * as z from 'zod';
import { canonicalJson, sha256Hex } from './canonical-json.ts';

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a sha256 in hexadecimal');

/** What evidence shows of a value instead of the value: whoever has it can prove that it is the one. */
export interface Digest {
  sha256: string;
  bytes: number;
}

/** Of a JSON value: hash and size of its canonical form (RFC 8785). */
export const digestOf = (value: unknown): Digest => textDigest(canonicalJson(value ?? null));

/** Of a sentence somebody wrote: hash and size of its UTF-8 bytes, as `sha256sum` and `wc -c` give them. */
export function textDigest(text: string): Digest {
  return { sha256: sha256Hex(text), bytes: Buffer.byteLength(text) };
}
