const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Characters of East Asian scripts and emoji take two columns of a terminal. */
const WIDE = /\p{Emoji_Presentation}|\p{scx=Han}|\p{scx=Hira}|\p{scx=Kana}|\p{scx=Hang}|[\uff01-\uff60]/u;
/** Where a word that is longer than a line is best broken: after one of these. */
const SEPARATORS = ':/.,';
const INDENT = '  ';

const columnsOf = (grapheme: string) => (WIDE.test(grapheme) ? 2 : 1);

/** Each of these takes one column; no need to look for graphemes, which takes long. */
const PLAIN = /^[ -~]*$/;

export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += columnsOf(segment);
  return width;
}

/** For one line in a list of many things, each of which can be shown whole. */
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

/** Every character, in as many lines as it takes: between words, and within one that is longer than a line. */
export function wrap(text: string, width: number): string[] {
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

/** Lines that go on are set in under the first, which keeps the indent it has. */
export function wrapUnder(text: string, columns: number): string[] {
  const margin = /^ */.exec(text)?.[0] ?? '';
  const under = margin + INDENT;
  const [first = '', ...rest] = wrap(text.slice(margin.length), columns - under.length);
  return [margin + first, ...rest.map((line) => under + line)];
}
