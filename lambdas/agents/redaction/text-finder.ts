/** The symbols of one text to find, for example the bytes of a password, or the characters of its hexadecimal form. */
export type Symbols = ArrayLike<number>;

const FAST_SYMBOLS = 128;

interface Node {
  /** How many symbols lead to this node. */
  depth: number;
  next: Map<number, Node>;
  /** The node of the longest proper suffix of these symbols that also begins a text. */
  fallback: Node | undefined;
  /** The longest text that ends here. */
  found: Found | undefined;
  /** The length of the shortest text that these symbols begin. */
  shortest: number;
}

interface Found {
  text: number;
  length: number;
}

const newNode = (depth: number): Node => ({
  depth,
  next: new Map(),
  fallback: undefined,
  found: undefined,
  shortest: Number.POSITIVE_INFINITY,
});

export const codesOf = (text: string): number[] => Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));

/**
 * Finds several texts in a stream, one symbol at a time (Aho-Corasick). It knows at each moment how many of the last symbols could be the
 * beginning of a text, so a caller withholds exactly these, and output without secrets is sent at once.
 */
export class TextFinder {
  readonly #root = newNode(0);
  #node = this.#root;
  /** For each symbol whether a text begins with it. */
  readonly #begins = new Uint8Array(FAST_SYMBOLS);
  /** Where each of the last symbols began, as a ring: no match is longer than it. */
  readonly #starts: Float64Array;
  #count = 0;

  constructor(texts: readonly Symbols[]) {
    texts.forEach((text, index) => {
      this.#add(text, index);
    });
    this.#linkFallbacks();
    this.#starts = new Float64Array(Math.max(1, ...texts.map(({ length }) => length)));
  }

  /** Takes a symbol that began at this offset. Returns where a text that ends with it began; -1 if none does. */
  take(symbol: number, offset: number): number {
    // Most symbols begin nothing.
    if (this.#node === this.#root && symbol < FAST_SYMBOLS && !this.#begins[symbol]) return -1;
    let node = this.#node;
    let next = node.next.get(symbol);
    while (next === undefined && node.fallback !== undefined) {
      node = node.fallback;
      next = node.next.get(symbol);
    }
    this.#node = next ?? this.#root;
    this.#starts[this.#count % this.#starts.length] = offset;
    this.#count += 1;
    return this.#node.found === undefined ? -1 : this.#startOf(this.#node.found.length);
  }

  /** The index of the text that the last symbol ended. */
  get found(): number {
    return this.#node.found?.text ?? -1;
  }

  /** Where the symbols began that could be the beginning of a text; infinite if there are none. */
  get pendingFrom(): number {
    return this.#node.depth === 0 ? Number.POSITIVE_INFINITY : this.#startOf(this.#node.depth);
  }

  /** Where a text began of which at least half has come; -1 for none. */
  get halfFoundFrom(): number {
    const { depth, shortest } = this.#node;
    return depth > 0 && depth * 2 >= shortest ? this.#startOf(depth) : -1;
  }

  /** What follows does not continue what came before. */
  reset(): void {
    this.#node = this.#root;
  }

  #startOf(length: number): number {
    return this.#starts[(this.#count - length) % this.#starts.length] ?? 0;
  }

  #add(text: Symbols, index: number): void {
    if (text.length === 0) return;
    if ((text[0] ?? 0) < FAST_SYMBOLS) this.#begins[text[0] ?? 0] = 1;
    let node = this.#root;
    for (let at = 0; at < text.length; at += 1) {
      const symbol = text[at] ?? 0;
      const next = node.next.get(symbol) ?? newNode(at + 1);
      next.shortest = Math.min(next.shortest, text.length);
      node.next.set(symbol, next);
      node = next;
    }
    node.found = { text: index, length: text.length };
  }

  #linkFallbacks(): void {
    const queue: Node[] = [this.#root];
    for (const node of queue) {
      for (const [symbol, next] of node.next) {
        let fallback = node.fallback;
        while (fallback !== undefined && !fallback.next.has(symbol)) fallback = fallback.fallback;
        next.fallback = fallback?.next.get(symbol) ?? this.#root;
        next.found ??= next.fallback.found;
        queue.push(next);
      }
    }
  }
}
