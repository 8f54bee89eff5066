/** Answers kept for a while in a warm function. A failed read is not kept: the next caller asks again. */
export class Kept<T> {
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
    this.#answers.set(key, { until: this.#now() + this.#forMs, answer });
    answer.catch(() => this.#answers.delete(key));
    return answer;
  }
}
