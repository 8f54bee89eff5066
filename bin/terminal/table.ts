import { cut, widthOf, wrap } from './fit-text.ts';
import type { Terminal, Tone } from './terminal.ts';

export interface Column {
  title: string;
  /** What stays when a line is too long for the terminal: a part, or in several lines all; without it, no column gives way. */
  keeps?: 'start' | 'end' | 'all';
}

export type Cell = string | { text: string; tone: Tone };

const GAP = '  ';
const FLEXIBLE_MIN_COLUMNS = 8;

/** Aligned columns under their titles; on a terminal no line is longer than it is wide. */
export function table(columns: readonly Column[], rows: readonly Cell[][], terminal: Terminal): string[] {
  const texts = rows.map((row) => row.map(textOf));
  const widths = fittingWidths(columns, texts, terminal.columns);
  const linesOf = (cells: readonly Cell[]) => {
    const parts = cells.map((cell, index) => fitted(textOf(cell), widths[index] ?? 0, columns[index]?.keeps));
    const height = Math.max(...parts.map((lines) => lines.length));
    return Array.from({ length: height }, (_, row) => {
      const line = cells.map((cell, index) => {
        const text = parts[index]?.[row] ?? '';
        const padding = ' '.repeat(Math.max((widths[index] ?? 0) - widthOf(text), 0));
        const tone = typeof cell === 'string' || text === '' ? undefined : cell.tone;
        return terminal.paint(tone, text) + padding;
      });
      return line.join(GAP).trimEnd();
    });
  };
  const titles = columns.map(({ title }): Cell => ({ text: title, tone: 'quiet' }));
  return [titles, ...rows].flatMap(linesOf);
}

const fitted = (text: string, width: number, keeps: Column['keeps']): string[] =>
  keeps === 'all' ? wrap(text, width) : [cut(text, width, keeps)];

const textOf = (cell: Cell) => (typeof cell === 'string' ? cell : cell.text);

/** The widest flexible column gives way first, so that none is cut more than it must be. */
function fittingWidths(columns: readonly Column[], texts: string[][], lineColumns: number): number[] {
  const widths = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...texts.map((row) => widthOf(row[index] ?? ''))),
  );
  const lineLength = () => widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1);
  while (lineLength() > lineColumns) {
    const candidates = columns.flatMap(({ keeps }, index) =>
      keeps && (widths[index] ?? 0) > FLEXIBLE_MIN_COLUMNS ? [index] : [],
    );
    const widest = candidates.sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0];
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
