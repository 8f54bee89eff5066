import { TokenShapes } from './redaction/token-shapes.ts';
import { type View, viewsOf } from './redaction/views.ts';

export const MASK = '[redacted]';

/** A shorter value would hide ordinary text everywhere. */
export const SECRET_MIN_CHARACTERS = 4;
/** A line of a secret with several lines is searched on its own, for example of a private key that a command indents. */
const LINE_MIN_CHARACTERS = 16;

interface Range {
  start: number;
  end: number;
  /** The mask for it has been returned; only its rest is still hidden. */
  masked: boolean;
}

/**
 * Hides secrets in a stream of text: the given values, exact and in base64 (at any byte offset, also base64url), hexadecimal, URL encoding and
 * JSON escapes, and tokens with a known shape. It withholds only the characters that could be the beginning of a secret, so output
 * without secrets is returned at once. What it withholds is bounded by the length of the longest value, not by the stream.
 */
export class Redactor {
  readonly #views: readonly View[];
  readonly #shapes = new TokenShapes();
  #text = '';
  /** Where `#text` begins in the stream. */
  #from = 0;
  #ranges: Range[] = [];

  constructor(values: readonly string[] = []) {
    this.#views = viewsOf(searched(values));
  }

  /** Takes the next part of the stream. Returns what can be shown. */
  push(text: string): string {
    const offset = this.#from + this.#text.length;
    this.#text += text;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      for (const view of this.#views) view.take(code, offset + index, this.#hide);
      this.#shapes.take(code, offset + index, this.#hide);
    }
    const heldFrom = Math.min(this.#shapes.heldFrom, ...this.#views.map((view) => view.heldFrom));
    return this.#release(Math.min(heldFrom, offset + text.length));
  }

  /** Returns the rest. If the stream ends within a value, its beginning is hidden from half of its length on. */
  end(): string {
    const end = this.#from + this.#text.length;
    for (const { halfFoundFrom } of this.#views) if (halfFoundFrom >= 0) this.#hide(halfFoundFrom, end);
    return this.#release(end);
  }

  /** How many characters are withheld at the moment. */
  get held(): number {
    return this.#text.length;
  }

  /** Everything is returned and no token has begun: another redactor can continue here. Holds for token shapes only. */
  get isIdle(): boolean {
    return this.held === 0 && this.#shapes.isIdle;
  }

  /** Ranges arrive in the order of their ends. */
  readonly #hide = (start: number, end: number): void => {
    const merged: Range = { start, end, masked: false };
    for (let last = this.#ranges.at(-1); last && last.end >= merged.start; last = this.#ranges.at(-1)) {
      merged.start = Math.min(merged.start, last.start);
      merged.end = Math.max(merged.end, last.end);
      merged.masked ||= last.masked;
      this.#ranges.pop();
    }
    this.#ranges.push(merged);
  };

  /** Removes the text up to this offset and returns it with masks. */
  #release(until: number): string {
    let shown = '';
    let at = this.#from;
    for (const range of this.#ranges) {
      if (range.start >= until) break;
      if (range.start > at) shown += this.#text.slice(at - this.#from, range.start - this.#from);
      if (!range.masked) shown += MASK;
      range.masked = true;
      at = Math.min(range.end, until);
    }
    if (at < until) shown += this.#text.slice(at - this.#from, until - this.#from);
    this.#text = this.#text.slice(until - this.#from);
    this.#from = until;
    // One that ends here stays: what follows may continue it.
    this.#ranges = this.#ranges.filter(({ end }) => end >= until);
    return shown;
  }
}

/** Hides secrets in a complete text. */
export function redact(text: string, values: readonly string[] = []): string {
  const redactor = new Redactor(values);
  return redactor.push(text) + redactor.end();
}

function searched(values: readonly string[]): string[] {
  const lines = values.flatMap((value) =>
    value
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line.length >= LINE_MIN_CHARACTERS),
  );
  return [...new Set([...values, ...lines])].filter((value) => value.length >= SECRET_MIN_CHARACTERS);
}
