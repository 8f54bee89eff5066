import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** RFC 8785 text of a JSON value: the same value always gives the same bytes, so it can be hashed and signed. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('only JSON values have a canonical form');
  return text;
}

/**
 * A JSON value that has a canonical form: halves of surrogate pairs, which JSON can spell and UTF-8 cannot, are replaced.
 * A number beyond the range of doubles has no form at all.
 */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError('a number is too large');
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key.toWellFormed(), wellFormed(each)]));
}

/** The value of a JSON text; undefined if it is not one. A parser's own message would quote the text. */
export function jsonOf(text: string): unknown {
  try {
    return wellFormed(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

export function hashOf(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}
