import type { Clock } from '../../../lambdas/entry/ports.ts';

interface ScheduledCall {
  atMs: number;
  order: number;
  run: () => void;
}

/** Time that moves only from one scheduled call to the next. Calls at the same time run in the order in which they were scheduled. */
export class VirtualTime implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #heap: ScheduledCall[] = [];

  constructor(startsAt: string) {
    this.#nowMs = Date.parse(startsAt);
  }

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): void {
    this.#order += 1;
    this.#heap.push({ atMs: this.#nowMs + Math.max(0, ms), order: this.#order, run });
    this.#siftUp(this.#heap.length - 1);
  }

  /** The time of the next call. */
  nextAtMs(): number | undefined {
    return this.#heap[0]?.atMs;
  }

  /** Advances to the next call and runs it. */
  runNext(): void {
    const [first] = this.#heap;
    const last = this.#heap.pop();
    if (!first || !last) return;
    if (this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#siftDown();
    }
    this.#nowMs = first.atMs;
    first.run();
  }

  /** Advances to a time before the next call. */
  moveTo(atMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, atMs);
  }

  #siftUp(start: number): void {
    for (let at = start; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #siftDown(): void {
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      if (left < this.#heap.length && this.#isBefore(left, least)) least = left;
      if (right < this.#heap.length && this.#isBefore(right, least)) least = right;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a] as ScheduledCall, this.#heap[b] as ScheduledCall];
    return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const swapped = this.#heap[a] as ScheduledCall;
    this.#heap[a] = this.#heap[b] as ScheduledCall;
    this.#heap[b] = swapped;
  }
}
