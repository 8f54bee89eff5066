/** Keys may come from requests, so the cache is bounded: beyond this the oldest entry is removed. */
const ENTRIES_MAX = 1_000;

/** Values that a warm function caches for a fixed time. A failed read is not cached: the next caller reads again. */
export class Cached<T> {
  readonly #forMs: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, { until: number; value: Promise<T> }>();

  constructor(forMs: number, now: () => number) {
    this.#forMs = forMs;
    this.#now = now;
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    const cached = this.#entries.get(key);
    if (cached && cached.until > this.#now()) return cached.value;
    const value = read();
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined && this.#entries.size >= ENTRIES_MAX) this.#entries.delete(oldest);
    this.#entries.set(key, { until: this.#now() + this.#forMs, value });
    value.catch(() => this.#entries.delete(key));
    return value;
  }
}
