import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** RFC 8785 text of a JSON value: the same value always gives the same bytes, so it can be hashed and signed. */
export function canonicalJson(value: unknown): string {
  const text = textOfPlain(value) ?? canonicalize(value);
  if (text === undefined) throw new TypeError('only JSON values have a canonical form');
  return text;
}

export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

export function hashOf(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}

/** The same value with its keys in the order of its canonical form, which is then found faster: for what is hashed more than once. */
export function inCanonicalOrder<T>(value: T): T {
  const ordered = inOrder(value, 0);
  return ordered === NOT_PLAIN ? value : (ordered as T);
}

/**
 * `JSON.stringify` writes the canonical text of a value whose keys are in order, in less than half of the time. Undefined for what needs
 * more than an order.
 */
function textOfPlain(value: unknown): string | undefined {
  const ordered = inOrder(value, 0);
  if (ordered === NOT_PLAIN) return undefined;
  const text = JSON.stringify(ordered);
  // A lone surrogate, or a backslash before these letters.
  return text === undefined || text.includes('\\ud') ? undefined : text;
}

const NOT_PLAIN = Symbol('needs more than an order of keys');
/** A value that contains itself is deeper, too. */
const DEPTH_MAX = 200;
const [DIGITS_FIRST, DIGITS_LAST] = ['0'.charCodeAt(0), '9'.charCodeAt(0)];

/** The value with the keys of all objects in order: the value itself if they already are. */
function inOrder(value: unknown, depth: number): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value : NOT_PLAIN;
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEPTH_MAX || (value as { toJSON?: unknown }).toJSON !== undefined) return NOT_PLAIN;
  if (Array.isArray(value)) return listInOrder(value, depth);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return NOT_PLAIN;
  return objectInOrder(value as Record<string, unknown>, depth);
}

function listInOrder(list: readonly unknown[], depth: number): unknown {
  let copy: unknown[] | undefined;
  for (let index = 0; index < list.length; index += 1) {
    const element = list[index];
    const ordered = inOrder(element, depth + 1);
    if (ordered === NOT_PLAIN) return NOT_PLAIN;
    if (ordered === element) continue;
    copy ??= [...list];
    copy[index] = ordered;
  }
  return copy ?? list;
}

function objectInOrder(object: Record<string, unknown>, depth: number): unknown {
  const keys = Object.keys(object);
  let isOrdered = true;
  let previous = '';
  for (const key of keys) {
    // Objects have numbers before other keys, and in another order; and they cannot be given a prototype as a key.
    const first = key.charCodeAt(0);
    if ((first >= DIGITS_FIRST && first <= DIGITS_LAST) || key === '__proto__') return NOT_PLAIN;
    if (key < previous) isOrdered = false;
    previous = key;
  }
  if (!isOrdered) keys.sort();
  let copy: Record<string, unknown> | undefined = isOrdered ? undefined : {};
  for (const key of keys) {
    const member = object[key];
    const ordered = inOrder(member, depth + 1);
    if (ordered === NOT_PLAIN) return NOT_PLAIN;
    if (ordered !== member) copy ??= { ...object };
    if (copy) copy[key] = ordered;
  }
  return copy ?? object;
}
