/**
 * Text as a person may safely read it. Characters that show nothing, reorder what is around them or could pass for our
 * own signs are written out, `⟦U+202E⟧`. Two different texts never look alike after it, but for letters that are twins.
 */

/** Ends of lines, where a text must stay on one. */
const NEWLINE_SIGN = '↵';
/** Most characters are these, and need no closer look. */
const PRINTABLE_ASCII = { first: ' ', last: '~' };
const DECEPTIVE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800⟦⟧↵]|(?! )\p{Zs}/u;
const PICTOGRAPH = /\p{Extended_Pictographic}/u;
/** Makes the pictograph before it colourful, and hides nothing. */
const EMOJI_STYLE = '\uFE0F';
const COMBINING = /\p{M}/u;
const SURROGATE_PAIR = /[\uD800-\uDBFF][\uDC00-\uDFFF]/g;
/** No script stacks more; what does means to cover its neighbours. */
const COMBINING_IN_A_ROW_MAX = 4;

/** Texts that are written from left to right and hold no letter that would turn their neighbours around. */
const LEFT_TO_RIGHT = /^[\x20-\x7E\p{Script=Latin}⟦⟧↵…→]*$/u;
const FIRST_STRONG_ISOLATE = '\u2068';
const POP_DIRECTIONAL_ISOLATE = '\u2069';

export interface Cut {
  shown: string;
  /** Characters of the original that are left out. */
  hidden: number;
}

type Lines = 'one' | 'many';

/** Whole, on one line. */
export const revealed = (text: string): string => cut(text, Number.POSITIVE_INFINITY, 'one').shown;

/** Whether anything had to be written out. */
export const hasUnseen = (text: string): boolean => cut(text, Number.POSITIVE_INFINITY, 'many').shown !== text;

/** As much as fits into `max` characters once revealed, and how much did not. */
export function cut(text: string, max: number, lines: Lines): Cut {
  let shown = '';
  let characters = 0;
  for (const sign of signs(text, lines)) {
    if (shown.length + sign.length > max) break;
    shown += sign;
    characters += 1;
  }
  return { shown, hidden: text.replaceAll(SURROGATE_PAIR, '_').length - characters };
}

/** In pieces of at most `max` characters, none of them cut in the middle of a sign. */
export function pieces(text: string, max: number): string[] {
  const found = [''];
  for (const sign of signs(text, 'many')) {
    const last = found.at(-1) ?? '';
    if (last.length + sign.length > max) found.push(sign);
    else found[found.length - 1] = last + sign;
  }
  return found;
}

/** Keeps a text from turning around what stands beside it on the same line; the pair of signs is ours alone. */
export function isolated(shown: string): string {
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
