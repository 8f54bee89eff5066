import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { Trigger } from '../run/run.ts';

/** Large payloads have only a few large members (`commits` of a push). If more would be omitted, the delivery is rejected. */
const OMITTED_MEMBERS_MAX = 16;
/** Replacing a smaller member saves nothing. */
const OMITTED_MEMBER_MIN_BYTES = 1024;

export interface StoredTrigger {
  trigger: Trigger;
  payloadHash: string;
}

/**
 * Stores a trigger with its payload, which rows contain compressed. If it does not fit into a row or a transaction, this
 * replaces the largest member with its digest and tries again. Filters have already read the full payload; the
 * expressions of the workflow read the stored one.
 */
export async function shrinkUntilStored<T>(trigger: Trigger, store: (stored: StoredTrigger) => Promise<T>): Promise<T> {
  let { payload } = trigger;
  for (let omitted = 0; ; omitted += 1) {
    try {
      return await store({ trigger: { ...trigger, payload }, payloadHash: hashOf(payload) });
    } catch (error) {
      const tooLarge = error instanceof CountersignError && error.code === 'ROW_TOO_LARGE';
      const smaller = tooLarge && omitted < OMITTED_MEMBERS_MAX ? withoutLargestMember(payload) : undefined;
      if (smaller === undefined) throw error;
      payload = smaller;
    }
  }
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? '');
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Replaces the largest part with `{ omitted: true, bytes, sha256 }`; undefined if no part is large. */
function withoutLargestMember(payload: unknown): unknown {
  if (!isObject(payload)) return undefined;
  const members = Object.entries(payload).map(([name, value]) => ({ name, value, bytes: bytesOf(value) }));
  const [largest] = members.sort((a, b) => b.bytes - a.bytes);
  if (!largest || largest.bytes < OMITTED_MEMBER_MIN_BYTES) return undefined;
  const { name, value, bytes } = largest;
  // Within an object only the largest member is replaced: of a record with one long note, only the note.
  return { ...payload, [name]: withoutLargestMember(value) ?? digestOf(value, bytes) };
}

const digestOf = (value: unknown, bytes: number) => ({
  omitted: true,
  bytes,
  sha256: hashOf(value),
  ...(Array.isArray(value) && { items: value.length }),
});
