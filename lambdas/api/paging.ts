import { createHmac } from 'node:crypto';
import { equalInConstantTime } from '../entry/constant-time.ts';
import { Problem } from '../entry/http.ts';
import type { Page } from '../run/run-store.ts';
import { cutToFit } from './response-size.ts';

export interface Paged {
  cursorSecret: () => Promise<string>;
}

/** One page of a list, and the cursor of the next page. The name of a list begins with its tenant. */
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

/** Reads one item more than the limit, to find out whether there is a next page. */
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

/** A page of a list that is in memory, ordered by place. */
export const pageOf = <Item>(
  all: readonly Item[],
  { after = '', limit }: { after?: string; limit: number },
  placeOf: (item: Item) => string,
): Promise<Page<Item>> =>
  pageByPlace(limit, async (count) => all.filter((item) => placeOf(item) > after).slice(0, count), placeOf);

/** A cursor is signed for one list of one tenant: it cannot be invented, or used for another list. */
export function sealCursor(position: string, list: string, secret: string): string {
  return `${Buffer.from(position).toString('base64url')}.${mac(position, list, secret)}`;
}

export function openCursor(cursor: string, list: string, secret: string): string {
  const [encoded = '', given = ''] = cursor.split('.');
  const position = Buffer.from(encoded, 'base64url').toString();
  if (!equalInConstantTime(mac(position, list, secret), given)) {
    throw new Problem(400, 'BAD_CURSOR', 'the cursor does not belong to this list; start again without a cursor');
  }
  return position;
}

function mac(position: string, list: string, secret: string): string {
  return createHmac('sha256', secret).update(`${list}\n${position}`).digest('base64url');
}
