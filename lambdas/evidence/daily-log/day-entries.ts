import { canonicalJson } from '../../run/canonical-json.ts';
import { LogEntry } from '../../run/log-entry.ts';
import { type DayLog, dayLogHead, positionOf } from './daily-log.ts';
import { leafHash, merkleRoot } from './merkle.ts';

/** A log without its entries, which as objects would not fit into the memory of a function. */
type DayLogHead = Omit<DayLog, 'entries'>;

export interface DayLogFile {
  head: DayLogHead;
  document: Buffer;
}

const ENTRIES = '"entries":[';
const [COMMA, CLOSING_BRACE, CLOSING_BRACKET] = [','.charCodeAt(0), '}'.charCodeAt(0), ']'.charCodeAt(0)];

/** Entries are stored in buffers of this size, because 200,000 small buffers need more memory than their content. */
const CHUNK_BYTES = 4 * 1024 * 1024;

/**
 * The entries of a day as the bytes of the log: 200,000 entries need about 70 MB, and their document 50 MB more. As
 * objects they would need more memory than the function has.
 */
export class DayEntries {
  readonly #positions: string[] = [];
  readonly #places: { chunk: Buffer; start: number; end: number }[] = [];
  #chunk = Buffer.alloc(0);
  #used = 0;

  static in(document: Buffer): DayEntries {
    const entries = new DayEntries();
    for (const entry of entriesIn(document)) entries.add(entry);
    return entries;
  }

  add(entry: LogEntry): void {
    const text = canonicalJson(entry);
    const bytes = Buffer.byteLength(text);
    if (this.#used + bytes > this.#chunk.length) {
      this.#chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, bytes));
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += this.#chunk.write(text, start);
    this.#positions.push(positionOf(entry));
    this.#places.push({ chunk: this.#chunk, start, end: this.#used });
  }

  /** True if all the others are among these, byte for byte. */
  haveAll(others: DayEntries): boolean {
    const indexes = new Map(this.#positions.map((position, index) => [position, index]));
    return others.#positions.every((position, other) => {
      const index = indexes.get(position);
      return index !== undefined && this.#text(index).equals(others.#text(other));
    });
  }

  /** The same bundles in any order give the same log. */
  log(facts: Pick<DayLog, 'tenant' | 'day' | 'previous'>): DayLogFile {
    const positions = this.#positions;
    const order = Uint32Array.from(positions.keys()).sort((a, b) =>
      (positions[a] as string) < (positions[b] as string) ? -1 : 1,
    );
    const head = dayLogHead(facts, order.length, merkleRoot(this.#leaves(order)).toString('hex'));
    return { head, document: this.#document(head, order) };
  }

  #text(index: number): Buffer {
    const { chunk, start, end } = this.#places[index] as { chunk: Buffer; start: number; end: number };
    return chunk.subarray(start, end);
  }

  *#leaves(order: Uint32Array): Generator<Buffer> {
    for (const index of order) yield leafHash(this.#text(index));
  }

  /** The same bytes as `canonicalJson` of the whole log. */
  #document(head: DayLogHead, order: Uint32Array): Buffer {
    const [before = '', after = ''] = canonicalJson({ ...head, entries: [] }).split(`${ENTRIES}]`);
    const [first, last] = [Buffer.from(`${before}${ENTRIES}`), Buffer.from(`]${after}`)];
    const commas = Math.max(0, order.length - 1);
    const bytes = this.#places.reduce((sum, { start, end }) => sum + end - start, first.length + commas + last.length);
    const document = Buffer.allocUnsafe(bytes);
    let at = first.copy(document);
    for (const [nth, index] of order.entries()) {
      if (nth > 0) at = document.writeUInt8(COMMA, at);
      at += this.#text(index).copy(document, at);
    }
    last.copy(document, at);
    return document;
  }
}

/** Parses the entries of a log one by one. Throws at the first that is malformed. */
export function* entriesIn(document: Buffer): Generator<LogEntry> {
  const entries = document.indexOf(ENTRIES);
  if (entries < 0) throw new SyntaxError('a log without entries');
  let at = entries + ENTRIES.length;
  while (document[at] !== CLOSING_BRACKET) {
    const { entry, end } = entryAt(document, at);
    yield entry;
    at = document[end] === COMMA ? end + 1 : end;
    if (at === end && document[at] !== CLOSING_BRACKET) throw new SyntaxError(`no entry ends at byte ${end}`);
  }
}

function entryAt(document: Buffer, start: number): { entry: LogEntry; end: number } {
  const brace = document.indexOf(CLOSING_BRACE, start);
  if (brace < 0) throw new SyntaxError(`no entry begins at byte ${start}`);
  return { entry: LogEntry.parse(JSON.parse(document.toString('utf8', start, brace + 1))), end: brace + 1 };
}
