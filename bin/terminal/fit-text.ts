const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const INDENT = '  ';
const WIDE = /\p{Emoji_Presentation}|\p{scx=Han}|\p{scx=Hira}|\p{scx=Kana}|\p{scx=Hang}|[\uff01-\uff60]/u;
/** A word longer than a line breaks after one of these. */
const SEPARATORS = ':/.,';

/** In terminal columns: East Asian characters and emoji take two. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

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

/** Splits into lines between words, and within a word only if it is longer than a line. Every line is indented like the first. */
export function wrap(text: string, width: number): string[] {
  const indent = /^ */.exec(text)?.[0] ?? '';
  if (indent !== '') return wrap(text.slice(indent.length), width - indent.length).map((line) => indent + line);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(`${line} ${word}`) <= width) {
      line = `${line} ${word}`;
      continue;
    }
    if (line !== '') lines.push(line);
    const pieces = broken(word, width);
    line = pieces.pop() ?? '';
    lines.push(...pieces);
  }
  return [...lines, line];
}

function broken(word: string, width: number): string[] {
  const pieces: string[] = [];
  let rest = Array.from(word);
  while (widthOf(rest.join('')) > width) {
    let fits = Math.max(
      rest.findIndex((_, index) => widthOf(rest.slice(0, index + 1).join('')) > width),
      1,
    );
    const separator = rest.slice(0, fits).findLastIndex((character) => SEPARATORS.includes(character));
    if (separator > 0) fits = separator + 1;
    pieces.push(rest.slice(0, fits).join(''));
    rest = rest.slice(fits);
  }
  return [...pieces, rest.join('')];
}

/** Like `wrap`, with the following lines indented below the first. */
export function wrapIndented(text: string, columns: number): string[] {
  const margin = /^ */.exec(text)?.[0] ?? '';
  const indent = margin + INDENT;
  const [first = '', ...rest] = wrap(text.slice(margin.length), columns - indent.length);
  return [margin + first, ...rest.map((line) => indent + line)];
}
