import { codesOf, type Symbols, TextFinder } from './text-finder.ts';

/** A found text: from the first character to the one after the last, counted from the beginning of the stream. */
export type Found = (start: number, end: number) => void;

/** Searches a stream for the values in one encoding, one character (UTF-16 code unit) at a time. */
export interface View {
  take(code: number, offset: number, found: Found): void;
  /** The first character that could belong to a value of which the rest is still to come; infinite if there is none. */
  readonly heldFrom: number;
  /** Where a value began of which at least half has come: at the end of the stream it is hidden too. -1 for none. */
  readonly halfFoundFrom: number;
}

/** Shorter encodings would be found by chance. */
const ENCODED_MIN_SYMBOLS = 8;
/** Tools break long encodings into lines and groups. More than this many separators in a row end an encoding. */
const SEPARATORS_MAX = 8;

const bytesOf = (value: string): Buffer => Buffer.from(value, 'utf8');
const longEnough = (texts: readonly Symbols[]): Symbols[] =>
  texts.filter(({ length }) => length >= ENCODED_MIN_SYMBOLS);

/** All encodings in which the values are searched. */
export function viewsOf(values: readonly string[]): View[] {
  if (values.length === 0) return [];
  return [
    new PlainView(values),
    new SeparatedView(longEnough(values.flatMap(base64Forms)), base64Symbol),
    new SeparatedView(longEnough(values.map((value) => codesOf(bytesOf(value).toString('hex')))), hexSymbol),
    new PercentView(values),
    new EscapeView(values),
  ];
}

class PlainView implements View {
  readonly #finder: TextFinder;

  constructor(values: readonly string[]) {
    this.#finder = new TextFinder(values.map(codesOf));
  }

  take(code: number, offset: number, found: Found): void {
    const start = this.#finder.take(code, offset);
    if (start >= 0) found(start, offset + 1);
  }

  get heldFrom(): number {
    return this.#finder.pendingFrom;
  }

  get halfFoundFrom(): number {
    return this.#finder.halfFoundFrom;
  }
}

/**
 * The value may begin at any byte of what was encoded, so there are three forms, each without the characters at both ends that
 * depend on the bytes beside the value.
 */
function base64Forms(value: string): number[][] {
  return [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), bytesOf(value)]);
    const wholeCharacters = Math.floor((bytes.length * 8) / 6);
    return codesOf(bytes.toString('base64').slice(before === 0 ? 0 : before + 1, wholeCharacters));
  });
}

const SEPARATOR = -1;
const isBlank = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);

/** Base64url uses two other characters. */
function base64Symbol(code: number): number {
  if (isBlank(code)) return SEPARATOR;
  if (code === 45) return 43;
  return code === 95 ? 47 : code;
}

/** Upper and lower case; with spaces or colons between bytes, as `xxd` and fingerprints have them. */
function hexSymbol(code: number): number {
  if (isBlank(code) || code === 58) return SEPARATOR;
  return code >= 65 && code <= 70 ? code + 32 : code;
}

/** An encoding that may contain separators. */
class SeparatedView implements View {
  readonly #finder: TextFinder;
  readonly #symbolOf: (code: number) => number;
  #separators = 0;

  constructor(texts: readonly Symbols[], symbolOf: (code: number) => number) {
    this.#finder = new TextFinder(texts);
    this.#symbolOf = symbolOf;
  }

  take(code: number, offset: number, found: Found): void {
    const symbol = this.#symbolOf(code);
    if (symbol === SEPARATOR) {
      this.#separators += 1;
      if (this.#separators > SEPARATORS_MAX) this.#finder.reset();
      return;
    }
    this.#separators = 0;
    const start = this.#finder.take(symbol, offset);
    if (start >= 0) found(start, offset + 1);
  }

  get heldFrom(): number {
    return this.#finder.pendingFrom;
  }

  get halfFoundFrom(): number {
    return this.#finder.halfFoundFrom;
  }
}

/** A view that decodes escape sequences. The characters of an unfinished sequence are withheld. */
abstract class DecodedView implements View {
  readonly #finder: TextFinder;
  readonly #introducer: number;
  #sequence: number[] = [];
  #sequenceFrom = 0;

  constructor(texts: readonly Symbols[], introducer: string) {
    this.#finder = new TextFinder(texts);
    this.#introducer = introducer.charCodeAt(0);
  }

  /** The symbol of a complete sequence; undefined for one that needs more; null for one that is none. */
  protected abstract decode(sequence: readonly number[]): number | undefined | null;

  /** The symbols of a character that is not part of a sequence. */
  protected abstract plain(code: number): number | readonly number[];

  take(code: number, offset: number, found: Found): void {
    if (this.#sequence.length === 0 && code !== this.#introducer) {
      this.#takePlain(code, offset, found);
      return;
    }
    if (this.#sequence.length === 0) this.#sequenceFrom = offset;
    this.#sequence.push(code);
    const decoded = this.decode(this.#sequence);
    if (decoded === undefined) return;
    const codes = this.#sequence;
    this.#sequence = [];
    if (decoded !== null) {
      this.#search(decoded, this.#sequenceFrom, offset + 1, found);
      return;
    }
    // Not a sequence: its first character is plain, and a sequence may begin within the others.
    const from = this.#sequenceFrom;
    this.#takePlain(codes[0] ?? 0, from, found);
    codes.slice(1).forEach((each, index) => {
      this.take(each, from + 1 + index, found);
    });
  }

  get heldFrom(): number {
    const sequenceFrom = this.#sequence.length === 0 ? Number.POSITIVE_INFINITY : this.#sequenceFrom;
    return Math.min(sequenceFrom, this.#finder.pendingFrom);
  }

  get halfFoundFrom(): number {
    return this.#finder.halfFoundFrom;
  }

  #takePlain(code: number, offset: number, found: Found): void {
    const symbols = this.plain(code);
    if (typeof symbols === 'number') this.#search(symbols, offset, offset + 1, found);
    else for (const symbol of symbols) this.#search(symbol, offset, offset + 1, found);
  }

  #search(symbol: number, offset: number, end: number, found: Found): void {
    const start = this.#finder.take(symbol, offset);
    if (start >= 0) found(start, end);
  }
}

const SPACE = 32;
const PLUS = 43;
const hexDigit = (code: number | undefined): number => {
  const digit = code === undefined ? Number.NaN : Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(digit) ? -1 : digit;
};

/** URL encoding, also if only some characters are encoded. The symbols are bytes; a plus sign is a space. */
class PercentView extends DecodedView {
  constructor(values: readonly string[]) {
    super(
      values.map((value) => [...bytesOf(value)].map((byte) => (byte === PLUS ? SPACE : byte))),
      '%',
    );
  }

  protected override decode([, high, low]: readonly number[]): number | undefined | null {
    if (high === undefined) return undefined;
    if (hexDigit(high) < 0) return null;
    if (low === undefined) return undefined;
    if (hexDigit(low) < 0) return null;
    const byte = hexDigit(high) * 16 + hexDigit(low);
    return byte === PLUS ? SPACE : byte;
  }

  protected override plain(code: number): number | readonly number[] {
    if (code < 128) return code === PLUS ? SPACE : code;
    return [...bytesOf(String.fromCharCode(code))];
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };
const LETTER_U = 117;
const LETTER_X = 120;

/** Escape sequences of JSON and of shells: `\"`, `\n`, `\u0041`, `\x41`. */
class EscapeView extends DecodedView {
  constructor(values: readonly string[]) {
    super(values.map(codesOf), '\\');
  }

  protected override decode([, kind, ...digits]: readonly number[]): number | undefined | null {
    if (kind === undefined) return undefined;
    const length = kind === LETTER_U ? 4 : kind === LETTER_X ? 2 : 0;
    if (digits.some((digit) => hexDigit(digit) < 0)) return null;
    if (digits.length < length) return undefined;
    if (length > 0) return digits.reduce((value, digit) => value * 16 + hexDigit(digit), 0);
    const letter = String.fromCharCode(kind);
    return (ESCAPES[letter] ?? letter).charCodeAt(0);
  }

  protected override plain(code: number): number {
    return code;
  }
}
