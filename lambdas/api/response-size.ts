import { type HttpResponse, Problem } from '../entry/http.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import type { Page } from '../run/run-store.ts';
import type { Omitted } from './contract/schemas.ts';

/** Lambda returns at most 6 MB. They include the response as JSON, in which the body is escaped a second time. */
const RESPONSE_MAX_BYTES = 6_200_000;
/** The limit of one page of a list. The item that would exceed it begins the next page. */
export const PAGE_MAX_BYTES = 3_000_000;
/** A larger value of a list item is replaced by its size and hash. */
const VALUE_MAX_BYTES = 16 * 1024;
const NESTED_MAX_BYTES = 64 * 1024;
const DEPTH_MAX = 3;

/** The size of a value in a response, where quotation marks are escaped. */
export const bytesInResponse = (value: unknown): number =>
  Buffer.byteLength(JSON.stringify(JSON.stringify(value) ?? ''));

/** Throws a 413. Without it, Lambda would turn the response into a 500 without a reason. */
export function assertResponseFits(response: HttpResponse): HttpResponse {
  const bytes = Buffer.byteLength(JSON.stringify(response));
  if (bytes <= RESPONSE_MAX_BYTES) return response;
  throw new Problem(
    413,
    'TOO_LARGE',
    `the response has ${bytes} bytes; at most ${RESPONSE_MAX_BYTES} can be sent; use a smaller limit, or request one part`,
  );
}

/** The items of a page that fit in one response, at least one. The next page begins after them. */
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

/** Replaces the large values of a list item by their size and hash. */
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
