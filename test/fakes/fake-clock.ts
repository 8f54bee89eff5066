import type { Clock } from '../../lambdas/entry/ports.ts';

export const STORY_BEGINS_AT = '2026-01-02T03:04:05.000Z';

/** Time that only a test can advance. */
export class FakeClock implements Clock {
  #nowMs: number;

  constructor(startsAt = STORY_BEGINS_AT) {
    this.#nowMs = Date.parse(startsAt);
  }

  now(): number {
    return this.#nowMs;
  }

  advance(byMs: number): void {
    if (!(byMs >= 0)) throw new RangeError(`time only moves forward, not by ${byMs} ms`);
    this.#nowMs += byMs;
  }
}
