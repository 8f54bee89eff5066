import { cut, widthOf, wrap } from './fit-text.ts';
import type { Terminal, Tone } from './terminal.ts';

export interface Column {
  title: string;
  /** If the table is too wide: wrap the cells, or cut them at the start or the end. Other columns keep their width. */
  shrink?: 'wrap' | 'cut-start' | 'cut-end';
}

export interface TonedText {
  text: string;
  tone?: Tone;
}

/** A list is a cell with several lines. */
export type Cell = string | readonly string[] | TonedText;

const GAP = '  ';
const INDENT = '  ';
const SHRUNK_MIN_COLUMNS = 6;

/**
 * Aligned columns below their titles. On a terminal the lines fit its width. No package does this: columns shrink one by
 * one, from the widest, and each wraps its cells or cuts them at the start or the end. Commands load no packages, either
 * (test/style/imports.test.ts).
 */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[], terminal: Terminal): string[] {
  const titles = columns.map(({ title }): Cell => ({ text: title, tone: 'quiet' }));
  return alignedLines(columns, [titles, ...rows], terminal);
}

export function alignedLines(
  columns: readonly Omit<Column, 'title'>[],
  rows: readonly (readonly Cell[])[],
  terminal: Pick<Terminal, 'columns' | 'paint'>,
): string[] {
  const widths = fittingWidths(columns, rows, terminal.columns);
  return rows.flatMap((row) => {
    const cells = row.map((cell, index) => fitted(linesOf(cell), widths[index] ?? 0, columns[index]?.shrink));
    const height = Math.max(...cells.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) => {
      const parts = row.map((cell, index) => {
        const text = cells[index]?.[line] ?? '';
        const tone = typeof cell === 'object' && 'text' in cell && text !== '' ? cell.tone : undefined;
        return terminal.paint(tone, text) + ' '.repeat(Math.max((widths[index] ?? 0) - widthOf(text), 0));
      });
      return parts.join(GAP).trimEnd();
    });
  });
}

function linesOf(cell: Cell): readonly string[] {
  if (typeof cell === 'string') return [cell];
  return 'text' in cell ? [cell.text] : cell;
}

function fitted(lines: readonly string[], width: number, shrink: Column['shrink']): string[] {
  if (shrink !== 'wrap') return lines.map((line) => cut(line, width, shrink === 'cut-start' ? 'end' : 'start'));
  if (lines.length === 1) return wrap(lines[0] ?? '', width);
  // The indent separates a continuation from the next line of the cell.
  return lines.flatMap((line) => {
    if (widthOf(line) <= width) return [line];
    return wrap(line, width - INDENT.length).map((part, index) => (index === 0 ? part : INDENT + part));
  });
}

/** Shrinks the widest column first, so that no column loses more than necessary. */
function fittingWidths(
  columns: readonly Omit<Column, 'title'>[],
  rows: readonly (readonly Cell[])[],
  lineColumns: number,
): number[] {
  // A loop: a long run has more rows than a call may have arguments.
  const widths = columns.map((_, index) => {
    let widest = 0;
    for (const row of rows) for (const line of linesOf(row[index] ?? '')) widest = Math.max(widest, widthOf(line));
    return widest;
  });
  let excess = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - lineColumns;
  for (; excess > 0; excess -= 1) {
    const shrinkable = columns.flatMap(({ shrink }, index) =>
      shrink && (widths[index] ?? 0) > SHRUNK_MIN_COLUMNS ? [index] : [],
    );
    const widest = shrinkable.sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0];
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
