import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const INDENT = '  ';

/** In terminal columns: East Asian characters and emoji take two. */
export const widthOf = (text: string): number => (/^[ -~]*$/.test(text) ? text.length : stringWidth(text));

/** Shortens to one line, with an ellipsis at the end that is dropped. */
export function cut(text: string, columns: number, keep: 'start' | 'end' = 'start'): string {
  if (widthOf(text) <= columns) return text;
  const all = Array.from(graphemes.segment(text), ({ segment }) => segment);
  let shown = '';
  for (const grapheme of keep === 'start' ? all : all.reverse()) {
    const longer = keep === 'start' ? shown + grapheme : grapheme + shown;
    if (widthOf(longer) > columns - 1) break;
    shown = longer;
  }
  return keep === 'start' ? `${shown}…` : `…${shown}`;
}

/** Splits into lines between words, and within a word only if it is longer than a line. Nothing is dropped. */
export const wrap = (text: string, columns: number): string[] =>
  widthOf(text) <= columns ? [text] : wrapAnsi(text, Math.max(columns, 1), { hard: true }).split('\n');

/** Like `wrap`, with the following lines indented below the first. */
export function wrapIndented(text: string, columns: number): string[] {
  const margin = /^ */.exec(text)?.[0] ?? '';
  const indent = margin + INDENT;
  const [first = '', ...rest] = wrap(text.slice(margin.length), columns - indent.length);
  return [margin + first, ...rest.map((line) => indent + line)];
}
