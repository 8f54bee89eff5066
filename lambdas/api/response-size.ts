import { type HttpResponse, Problem } from '../entry/http.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import type { Page } from '../run/run-store.ts';

/** Lambda hands over 6 MB at most, of the answer as JSON, its body escaped once more. */
const ANSWER_MAX_BYTES = 6_200_000;
/** What a page of a list takes of it; the item that reaches the limit is the last one. */
export const PAGE_MAX_BYTES = 3_000_000;
/** A larger value is shown by its size and hash. */
const VALUE_MAX_BYTES = 16 * 1024;
const NESTED_MAX_BYTES = 64 * 1024;
const DEPTH_MAX = 3;

/** The bytes of a value in an answer, where quotes are escaped. */
export const bytesInResponse = (value: unknown): number =>
  Buffer.byteLength(JSON.stringify(JSON.stringify(value) ?? ''));

/** Too large an answer would become a 500 that says nothing. */
export function assertResponseFits(answer: HttpResponse): HttpResponse {
  const bytes = Buffer.byteLength(JSON.stringify(answer));
  if (bytes <= ANSWER_MAX_BYTES) return answer;
  throw new Problem(
    413,
    'TOO_LARGE',
    `the answer has ${bytes} bytes, and ${ANSWER_MAX_BYTES} can be sent; ask for less at once, with a smaller limit or for one part`,
  );
}

/** As much of a page as one answer holds, at least one item; the next page goes on where it ends. */
export function cutToFit<Item>(
  page: Page<Item>,
  placeOf: (item: Item) => string,
  maxBytes = PAGE_MAX_BYTES,
): Page<Item> {
  let bytes = 0;
  const end = page.items.findIndex((item) => {
    bytes += bytesInResponse(item);
    return bytes > maxBytes;
  });
  const items = end < 0 ? page.items : page.items.slice(0, Math.max(1, end));
  const last = items.at(-1);
  if (last === undefined || items.length === page.items.length) return page;
  return { items, next: placeOf(last) };
}

/** What stands in the place of a value that is too large to be shown with others. */
export interface Omitted {
  omitted: { bytes: number; sha256: string };
}

/** An item of a list, its large values replaced by their size and hash. */
export function withoutLargeValues<Item extends object>(item: Item): Item {
  const fields = Object.entries(item).map(([name, value]) => [name, bounded(value, DEPTH_MAX)]);
  return Object.fromEntries(fields) as Item;
}

function bounded(value: unknown, depth: number): unknown {
  const text = JSON.stringify(value) ?? '';
  if (Buffer.byteLength(text) <= VALUE_MAX_BYTES) return value;
  if (depth > 0 && typeof value === 'object' && value !== null) {
    const parts = Array.isArray(value)
      ? value.map((part) => bounded(part, depth - 1))
      : Object.fromEntries(Object.entries(value).map(([name, part]) => [name, bounded(part, depth - 1)]));
    if (Buffer.byteLength(JSON.stringify(parts)) <= NESTED_MAX_BYTES) return parts;
  }
  return { omitted: { bytes: Buffer.byteLength(text), sha256: sha256Hex(text) } } satisfies Omitted;
}
