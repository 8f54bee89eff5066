/** The time of this machine: `wall` may be wrong or jump, `monotonic` (in ms) only measures how much time has passed. */
export interface MachineClock {
  wall(): number;
  monotonic(): number;
}

/**
 * A wrong clock is corrected by the time of the runtime, but only so far: an API that lies about the time could otherwise
 * make an old assignment valid again.
 */
export const CORRECTION_MAX_MS = 10 * 60_000;

/** The time of the runtime, as far as this machine knows it. */
export class ServerClock {
  readonly #machine: MachineClock;
  /** The time of the runtime when `monotonic` was this; before the first response, the wall clock. */
  #known: { server: number; monotonic: number };
  #difference = 0;

  constructor(machine: MachineClock) {
    this.#machine = machine;
    this.#known = { server: machine.wall(), monotonic: machine.monotonic() };
  }

  now(): number {
    return this.#known.server + (this.#machine.monotonic() - this.#known.monotonic);
  }

  iso(): string {
    return new Date(this.now()).toISOString();
  }

  /** How far the clock of this machine was from the runtime, in ms: positive if it is behind. */
  get difference(): number {
    return this.#difference;
  }

  /** A time that the runtime sent in response to a request which left at `sentAt` (monotonic). */
  learn(server: number, sentAt: number): void {
    if (!Number.isFinite(server)) return;
    const monotonic = this.#machine.monotonic();
    // The response was probably made in the middle between request and now.
    const estimate = server + (monotonic - sentAt) / 2;
    this.#difference = Math.round(estimate - this.#machine.wall());
    if (Math.abs(this.#difference) <= CORRECTION_MAX_MS) this.#known = { server: estimate, monotonic };
  }

  /** The clock is so wrong that it is not corrected. */
  get isWrong(): boolean {
    return Math.abs(this.#difference) > CORRECTION_MAX_MS;
  }
}
