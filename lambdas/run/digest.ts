import * as z from 'zod';
import { canonicalJson, hashOf, sha256Hex } from './canonical-json.ts';

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a sha256 in hexadecimal');

/** Evidence shows a digest instead of a value. A person who has the value can prove that it is the original. */
export interface Digest {
  sha256: string;
  bytes: number;
}

/** Hash and size of the canonical form (RFC 8785) of a JSON value. */
export function digestOf(value: unknown): Digest {
  const { sha256, bytes } = textDigest(canonicalJson(value ?? null));
  // In canonical order, because evidence writes most digests.
  return { bytes, sha256 };
}

/** Hash and size of the UTF-8 bytes of a text, as `sha256sum` and `wc -c` compute them. */
export function textDigest(text: string): Digest {
  return { sha256: sha256Hex(text), bytes: Buffer.byteLength(text) };
}

/** `H(salt + JCS(value))`, as docs/evidence-format.md defines it. */
export const saltedDigest = (salt: string, value: unknown): string =>
  sha256Hex(`${salt}${canonicalJson(value ?? null)}`);

export const fieldDigests = (salt: string, fields: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, saltedDigest(salt, value)]));

/** Identifies the fields that a request writes. Runs that an earlier version started have no salt. */
export const requestHash = (fields: Record<string, unknown>, salt: string | undefined): string =>
  hashOf(salt === undefined ? fields : fieldDigests(salt, fields));
