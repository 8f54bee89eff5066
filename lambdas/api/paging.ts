import * as z from 'zod';
import type { HttpEvent } from '../entry/http.ts';
import { openCursor, sealCursor } from './cursor.ts';
import { parseQuery } from './request.ts';

const PAGE_MAX = 100;
const PAGE_DEFAULT = 25;
const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_DEFAULT),
  cursor: z.string().optional(),
});

export interface List<Item> {
  /** A cursor belongs to one list of one tenant. */
  name: string;
  cursorSecret: () => Promise<string>;
  read(page: { after?: string; limit: number }): Promise<Item[]>;
  placeOf(item: Item): string;
}

/** One page of a list, and where to go on if there is more. */
export async function readPage<Item>(
  event: HttpEvent,
  list: List<Item>,
): Promise<{ items: Item[]; nextCursor: string | null }> {
  const { limit, cursor } = parseQuery(PageQuery, event);
  const secret = await list.cursorSecret();
  const after = cursor === undefined ? undefined : openCursor(cursor, list.name, secret);
  const found = await list.read({ ...(after !== undefined && { after }), limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const more = found.length > limit && last !== undefined;
  return { items, nextCursor: more ? sealCursor(list.placeOf(last), list.name, secret) : null };
}
