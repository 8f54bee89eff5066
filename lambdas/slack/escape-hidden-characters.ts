/**
 * Escapes characters that are invisible, reorder their neighbours or imitate the escapes themselves, as `⟦U+202E⟧`. Two
 * different texts never look the same afterwards, except for letters that look alike.
 */

/** Replaces a newline in a text on one line. */
const NEWLINE_SIGN = '↵';
/** The common case, which needs no further checks. */
const PRINTABLE_ASCII = { first: ' ', last: '~' };
const DECEPTIVE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800⟦⟧↵]|(?! )\p{Zs}/u;
const PICTOGRAPH = /\p{Extended_Pictographic}/u;
/** Selects the color form of the pictograph before it; harmless. */
const EMOJI_STYLE = '\uFE0F';
const COMBINING = /\p{M}/u;
const SURROGATE_PAIR = /[\uD800-\uDBFF][\uDC00-\uDFFF]/g;
/** No script uses more; a longer stack covers its neighbours. */
const COMBINING_IN_A_ROW_MAX = 4;

/** Text without a character that could change the direction of its neighbours. */
const LEFT_TO_RIGHT = /^[\x20-\x7E\p{Script=Latin}⟦⟧↵…→]*$/u;
const FIRST_STRONG_ISOLATE = '\u2068';
const POP_DIRECTIONAL_ISOLATE = '\u2069';

export interface CutText {
  shown: string;
  /** Omitted characters of the original. */
  hidden: number;
}

type Lines = 'one' | 'many';

/** The full text on one line. */
export const escapeHidden = (text: string): string => escapeAndCut(text, Number.POSITIVE_INFINITY, 'one').shown;

/** Whether the text has characters that are escaped. */
export const hasHiddenCharacters = (text: string): boolean =>
  escapeAndCut(text, Number.POSITIVE_INFINITY, 'many').shown !== text;

/** As much as fits into `max` characters after escaping. */
export function escapeAndCut(text: string, max: number, lines: Lines): CutText {
  let shown = '';
  let characters = 0;
  for (const sign of signs(text, lines)) {
    if (shown.length + sign.length > max) break;
    shown += sign;
    characters += 1;
  }
  return { shown, hidden: text.replaceAll(SURROGATE_PAIR, '_').length - characters };
}

/** The escaped text in pieces of at most `max` characters; no escape is split. */
export function escapeInPieces(text: string, max: number): string[] {
  const found = [''];
  for (const sign of signs(text, 'many')) {
    const last = found.at(-1) ?? '';
    if (last.length + sign.length > max) found.push(sign);
    else found[found.length - 1] = last + sign;
  }
  return found;
}

/** Prevents right-to-left text from reordering its neighbours on the line. The text itself cannot contain these characters. */
export function isolateDirection(shown: string): string {
  return LEFT_TO_RIGHT.test(shown) ? shown : `${FIRST_STRONG_ISOLATE}${shown}${POP_DIRECTIONAL_ISOLATE}`;
}

function* signs(text: string, lines: Lines): Generator<string> {
  let combiningInARow = 0;
  let before = '';
  for (const character of text) {
    if (character >= PRINTABLE_ASCII.first && character <= PRINTABLE_ASCII.last) {
      combiningInARow = 0;
      before = character;
      yield character;
      continue;
    }
    combiningInARow = COMBINING.test(character) ? combiningInARow + 1 : 0;
    if (character === '\n') yield lines === 'one' ? NEWLINE_SIGN : '\n';
    else if (character === EMOJI_STYLE && PICTOGRAPH.test(before)) yield character;
    else if (DECEPTIVE.test(character) || combiningInARow > COMBINING_IN_A_ROW_MAX) yield writtenOut(character);
    else yield character;
    before = character;
  }
}

function writtenOut(character: string): string {
  return `⟦U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟧`;
}
