import type { Call, Option } from './command.ts';
import { UsageError } from './failure.ts';

export const PAGE_MAX = 100;

export const pagingOptions = (items: string): Record<string, Option> => ({
  limit: { value: 'N', description: `${items} per page, 1 to ${PAGE_MAX} (default 25)` },
  all: { description: 'all pages' },
  cursor: { value: 'CURSOR', description: 'continue after an earlier page' },
});

export interface PageQuery {
  limit?: string;
  cursor?: string;
}

/** One page, or with `--all` every page. */
export async function readPages<Item>(
  call: Call,
  read: (query: PageQuery) => Promise<{ items: Item[]; nextCursor: string | null }>,
): Promise<{ items: Item[]; nextCursor: string | null }> {
  const limit = limitOf(call);
  let page = await read({ limit, cursor: call.option('cursor') });
  const items = [...page.items];
  while (call.isSet('all') && page.nextCursor !== null) {
    page = await read({ limit, cursor: page.nextCursor });
    items.push(...page.items);
  }
  return { items, nextCursor: page.nextCursor };
}

export function limitOf(call: Call): string | undefined {
  const limit = call.option('limit') ?? (call.isSet('all') ? String(PAGE_MAX) : undefined);
  if (limit === undefined || (/^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= PAGE_MAX)) return limit;
  throw new UsageError(`--limit must be a number from 1 to ${PAGE_MAX}, not "${limit}"`);
}

export function noteMore({ terminal }: Call, nextCursor: string | null): void {
  if (nextCursor !== null) terminal.note(`\nthere are more: use --all, or --cursor ${nextCursor}`);
}
