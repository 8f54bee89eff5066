import * as z from 'zod';
import type { Page } from '../../run/run-store.ts';
import { cutToFit } from '../response-size.ts';
import { openCursor, sealCursor } from './cursor.ts';

export const PAGE_MAX = 100;
const PAGE_DEFAULT = 25;
export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_DEFAULT),
  cursor: z.string().optional(),
});

export interface Paged {
  cursorSecret: () => Promise<string>;
}

/** One page of the list of this name, which names its tenant too, and where to go on if there is more. */
export async function readPage<Item>(
  { cursorSecret }: Paged,
  list: string,
  { limit, cursor }: { limit: number; cursor?: string },
  read: (page: { after?: string; limit: number }) => Promise<Page<Item>>,
): Promise<{ items: Item[]; nextCursor: string | null }> {
  const secret = await cursorSecret();
  const after = cursor === undefined ? undefined : openCursor(cursor, list, secret);
  const { items, next } = await read({ limit, ...(after !== undefined && { after }) });
  return { items, nextCursor: next === undefined ? null : sealCursor(next, list, secret) };
}

/** A page of what is read by number: one more is asked for, to see whether there are more. */
export async function pageByPlace<Item>(
  limit: number,
  read: (limit: number) => Promise<Item[]>,
  placeOf: (item: Item) => string,
): Promise<Page<Item>> {
  const found = await read(limit + 1);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return cutToFit({ items, ...(last !== undefined && found.length > limit && { next: placeOf(last) }) }, placeOf);
}

/** A page of what is all here already, in the order of its places. */
export const pageOf = <Item>(
  all: readonly Item[],
  { after = '', limit }: { after?: string; limit: number },
  placeOf: (item: Item) => string,
): Promise<Page<Item>> =>
  pageByPlace(limit, async (count) => all.filter((item) => placeOf(item) > after).slice(0, count), placeOf);
