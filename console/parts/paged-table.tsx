import Button from '@cloudscape-design/components/button';
import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Problem } from './problem.tsx';
import { type Columns, Table } from './table.tsx';

export type { Columns } from './table.tsx';

const PAGE_SIZE = 50;

export interface Pages {
  /** For the query of the list. */
  query: { limit: number; cursor?: string };
  isFirst: boolean;
  previous(): void;
  next(cursor: string): void;
}

/** The pages of a list. Another `filter` begins at its first page. */
export function usePages(filter = ''): Pages {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter begins at its first page
  useEffect(() => setCursors([]), [filter]);
  const cursor = cursors.at(-1);
  return {
    query: { limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) },
    isFirst: cursor === undefined,
    previous: () => setCursors(cursors.slice(0, -1)),
    next: (following) => setCursors([...cursors, following]),
  };
}

interface PagedTableProps<Item> {
  /** Of the list, for screen readers. */
  label: string;
  list: Pick<UseQueryResult<{ nextCursor: string | null }>, 'data' | 'error' | 'isPending' | 'refetch'>;
  items: readonly Item[];
  columns: Columns<Item>;
  trackBy: (item: Item) => string;
  empty: ReactNode;
  pages: Pages;
}

/** A list of at most 50 rows with buttons for the pages before and after it. */
export function PagedTable<Item>({ label, list, items, columns, trackBy, empty, pages }: PagedTableProps<Item>) {
  const nextCursor = list.data?.nextCursor ?? null;
  return (
    <>
      {list.error && <Problem error={list.error} retry={() => list.refetch()} />}
      <Table
        label={label}
        items={items}
        columns={columns}
        trackBy={trackBy}
        isLoading={list.isPending}
        empty={list.error ? null : empty}
      />
      {(nextCursor !== null || !pages.isFirst) && (
        <div className="pager">
          <Button disabled={pages.isFirst} onClick={pages.previous}>
            Previous page
          </Button>
          <Button disabled={nextCursor === null} onClick={() => nextCursor !== null && pages.next(nextCursor)}>
            Next page
          </Button>
        </div>
      )}
    </>
  );
}
