import type { Terminal, Tone } from './terminal.ts';

export interface Column {
  title: string;
  /** Which part stays when a line is too long for the terminal; columns without it are never cut. */
  keeps?: 'start' | 'end';
}

export type Cell = string | { text: string; tone: Tone };

const GAP = '  ';
const FLEXIBLE_MIN_COLUMNS = 8;

/** Aligned columns under their titles; on a terminal no line is longer than it is wide. */
export function table(columns: readonly Column[], rows: readonly Cell[][], terminal: Terminal): string[] {
  const texts = rows.map((row) => row.map(textOf));
  const widths = fittingWidths(columns, texts, terminal.columns);
  const line = (cells: readonly Cell[]) => {
    const parts = cells.map((cell, index) => {
      const width = widths[index] ?? 0;
      const text = cut(textOf(cell), width, columns[index]?.keeps);
      const padding = ' '.repeat(Math.max(width - widthOf(text), 0));
      return terminal.paint(typeof cell === 'string' ? undefined : cell.tone, text) + padding;
    });
    return parts.join(GAP).trimEnd();
  };
  return [line(columns.map(({ title }) => ({ text: title, tone: 'quiet' }))), ...rows.map(line)];
}

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

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Characters of East Asian scripts and emoji take two columns of a terminal. */
const WIDE = /\p{Emoji_Presentation}|\p{scx=Han}|\p{scx=Hira}|\p{scx=Kana}|\p{scx=Hang}|[\uff01-\uff60]/u;

const columnsOf = (grapheme: string) => (WIDE.test(grapheme) ? 2 : 1);

export function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += columnsOf(segment);
  return width;
}

export function cut(text: string, columns: number, keeps: 'start' | 'end' = 'start'): string {
  if (widthOf(text) <= columns) return text;
  const all = Array.from(graphemes.segment(text), ({ segment }) => segment);
  const kept: string[] = [];
  let width = 0;
  for (const grapheme of keeps === 'start' ? all : all.reverse()) {
    width += columnsOf(grapheme);
    if (width > columns - 1) break;
    kept.push(grapheme);
  }
  return keeps === 'start' ? `${kept.join('')}…` : `…${kept.reverse().join('')}`;
}
