/** Keys may come from outside: the oldest answer goes when there are more than these. */
const ANSWERS_MAX = 1_000;

/** Answers kept for a while in a warm function. A failed read is not kept: the next caller asks again. */
export class Cached<T> {
  readonly #forMs: number;
  readonly #now: () => number;
  readonly #answers = new Map<string, { until: number; answer: Promise<T> }>();

  constructor(forMs: number, now: () => number) {
    this.#forMs = forMs;
    this.#now = now;
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    const kept = this.#answers.get(key);
    if (kept && kept.until > this.#now()) return kept.answer;
    const answer = read();
    const [oldest] = this.#answers.keys();
    if (oldest !== undefined && this.#answers.size >= ANSWERS_MAX) this.#answers.delete(oldest);
    this.#answers.set(key, { until: this.#now() + this.#forMs, answer });
    answer.catch(() => this.#answers.delete(key));
    return answer;
  }
}
