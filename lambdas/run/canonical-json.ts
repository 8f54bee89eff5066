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

/** The canonical text of an object whose members are canonical texts already. */
export function objectText(members: Readonly<Record<string, string>>): string {
  const names = Object.keys(members).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${members[name]}`).join(',')}}`;
}

export const listText = (elements: readonly string[]): string => `[${elements.join(',')}]`;

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
  let copy: Record<string, unknown> | undefined;
  let isOrdered = true;
  let previous = '';
  // Faster than a list of the keys. Plain objects inherit none.
  for (const key in object) {
    // Objects have numbers before other keys, and in another order; and they cannot be given a prototype as a key.
    const first = key.charCodeAt(0);
    if ((first >= DIGITS_FIRST && first <= DIGITS_LAST) || key === '__proto__') return NOT_PLAIN;
    if (key < previous) isOrdered = false;
    previous = key;
    const member = object[key];
    const ordered = inOrder(member, depth + 1);
    if (ordered === NOT_PLAIN) return NOT_PLAIN;
    if (ordered === member) continue;
    copy ??= { ...object };
    copy[key] = ordered;
  }
  return isOrdered ? (copy ?? object) : withKeysInOrder(copy ?? object);
}

function withKeysInOrder(object: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object).sort()) copy[key] = object[key];
  return copy;
}
