import { widthOf, wrap } from '../../terminal/fit-text.ts';

const GAP = '  ';
const INDENT = '  ';
const NARROWEST_COLUMN = 8;

/**
 * Rows in aligned columns, each row as the lines it takes. Nothing is cut, since evidence is read to its last word: what
 * does not fit goes on in the next line. A cell may have several lines to begin with.
 */
export function layOut(rows: readonly (string | string[])[][], lineColumns: number): string[][] {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? [cell] : cell)));
  const widths = fittingWidths(cells, lineColumns);
  return cells.map((row) => {
    const wrapped = row.map((lines, column) => wrapAll(lines, widths[column] ?? 0));
    const height = Math.max(...wrapped.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) => {
      const parts = wrapped.map((lines, column) => padded(lines[line] ?? '', widths[column] ?? 0));
      return parts.join(GAP).trimEnd();
    });
  });
}

const padded = (text: string, width: number) => text + ' '.repeat(Math.max(width - widthOf(text), 0));

/** The widest column gives way first. */
function fittingWidths(rows: readonly string[][][], lineColumns: number): number[] {
  const widest = (column: number) => {
    let width = 0;
    for (const row of rows) for (const line of row[column] ?? []) width = Math.max(width, widthOf(line));
    return width;
  };
  const widths = (rows[0] ?? []).map((_, column) => widest(column));
  const length = () => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
  while (length() > lineColumns) {
    const givesWay = widths.indexOf(Math.max(...widths));
    if ((widths[givesWay] ?? 0) <= NARROWEST_COLUMN) break;
    widths[givesWay] = (widths[givesWay] ?? 0) - 1;
  }
  return widths;
}

/** Where a cell has several lines, an indent tells what goes on from what begins. */
function wrapAll(lines: readonly string[], width: number): string[] {
  if (lines.length === 1) return wrap(lines[0] ?? '', width);
  return lines.flatMap((line) => {
    if (widthOf(line) <= width) return [line];
    return wrap(line, width - INDENT.length).map((part, index) => (index === 0 ? part : INDENT + part));
  });
}
