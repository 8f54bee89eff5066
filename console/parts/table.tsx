import type { ReactNode } from 'react';
import { useRowKeys } from '../shell/keyboard.ts';

export interface Column<Item> {
  id: string;
  header: string;
  cell(item: Item): ReactNode;
  /** The cell that names the row. */
  isRowHeader?: boolean | undefined;
  minWidth?: number | undefined;
  /** Its values stay on one line. */
  noWrap?: boolean | undefined;
}
export type Columns<Item> = readonly Column<Item>[];

interface TableProps<Item> {
  /** Of the list, for screen readers. */
  label: string;
  items: readonly Item[];
  columns: Columns<Item>;
  trackBy: (item: Item) => string;
  isLoading: boolean;
  /** Instead of rows. */
  empty: ReactNode;
}

/** A list. On narrow screens each row is a card. Plain HTML: the component for tables alone is 50 KB. */
export function Table<Item>({ label, items, columns, trackBy, isLoading, empty }: TableProps<Item>) {
  useRowKeys('.list-table tbody tr');
  if (isLoading) return <p role="status">Loading …</p>;
  if (items.length === 0) return empty;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard
    <div className="list-table scroll-x" tabIndex={0}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ id, header, minWidth }) => (
              <th key={id} scope="col" style={{ minWidth }}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={trackBy(item)} tabIndex={-1}>
              {columns.map(({ id, header, cell, isRowHeader, noWrap }) =>
                isRowHeader ? (
                  <th key={id} scope="row">
                    {cell(item)}
                  </th>
                ) : (
                  <td key={id} data-label={header} className={noWrap ? 'no-wrap' : undefined}>
                    {cell(item)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
