/** All random numbers of a simulation: the same seed always gives the same numbers. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    // Spreads seeds over the whole range, so that neighbouring seeds give different simulations.
    this.#state = Math.imul(seed ^ 0x9e37_79b9, 0x85eb_ca6b) >>> 0;
    for (let warmUp = 0; warmUp < 4; warmUp += 1) this.next();
  }

  /** In [0, 1): mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `from` up to, not including, `to`. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from));
  }

  pick<T>(choices: readonly [T, ...T[]] | readonly T[]): T {
    return choices[this.between(0, choices.length)] as T;
  }

  /** Some of the choices, at least one. */
  some<T>(choices: readonly T[], atMost: number): T[] {
    const left = [...choices];
    const wanted = this.between(1, Math.min(atMost, left.length) + 1);
    return Array.from({ length: wanted }, () => left.splice(this.between(0, left.length), 1)[0] as T);
  }
}
