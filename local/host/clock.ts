import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { privateFile } from './private-files.ts';

/** setTimeout fires immediately for a longer delay, so a longer wait is divided. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** Characters of the stored text, so that a shorter number replaces a longer one. */
const LONGEST_TEXT = 64;

export interface Timer {
  cancel(): void;
}

/**
 * The clock of the local host: real time plus an offset that only grows. `advance` moves all timers, leases, schedules and
 * approval deadlines forward. Function threads share the offset through `sharedOffset`, so that their `Date` is the same.
 * The offset is stored, because stored times would otherwise be in the future after a restart.
 */
export class HostClock {
  /** One number: milliseconds ahead of real time, in shared memory. */
  readonly sharedOffset = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
  readonly #file: string;
  readonly #timers = new Set<{ atMs: number; run: () => void; handle?: NodeJS.Timeout }>();

  constructor(dataFolder: string) {
    this.#file = join(dataFolder, 'clock.json');
    this.sharedOffset[0] = readOffset(this.#file);
  }

  now(): number {
    return Date.now() + (this.sharedOffset[0] ?? 0);
  }

  /** Runs `run` when the clock reaches `atMs`. If that time has passed, runs it soon, but not synchronously. */
  at(atMs: number, run: () => void): Timer {
    const timer = { atMs, run };
    this.#timers.add(timer);
    this.#arm(timer);
    return { cancel: () => this.#drop(timer) };
  }

  advance(byMs: number): void {
    if (!(byMs >= 0)) throw new RangeError(`the clock moves only forward, not by ${byMs} ms`);
    this.sharedOffset[0] = (this.sharedOffset[0] ?? 0) + byMs;
    this.#store(this.sharedOffset[0]);
    for (const timer of [...this.#timers].sort((a, b) => a.atMs - b.atMs)) this.#arm(timer);
  }

  stop(): void {
    for (const timer of this.#timers) this.#drop(timer);
  }

  /** Writes over the file: emptying it first, as `writeFileSync` does by default, may wait for the disk, and the host waits with it. */
  #store(offsetMs: number): void {
    privateFile(this.#file);
    writeFileSync(this.#file, JSON.stringify({ offsetMs }).padEnd(LONGEST_TEXT), { flag: 'r+' });
  }

  #arm(timer: { atMs: number; run: () => void; handle?: NodeJS.Timeout }): void {
    clearTimeout(timer.handle);
    const delayMs = Math.min(Math.max(timer.atMs - this.now(), 0), LONGEST_TIMEOUT_MS);
    timer.handle = setTimeout(() => {
      if (this.now() < timer.atMs) return this.#arm(timer);
      this.#drop(timer);
      timer.run();
    }, delayMs);
  }

  #drop(timer: { handle?: NodeJS.Timeout; atMs: number; run: () => void }): void {
    clearTimeout(timer.handle);
    this.#timers.delete(timer);
  }
}

function readOffset(file: string): number {
  try {
    return Number(JSON.parse(readFileSync(file, 'utf8')).offsetMs) || 0;
  } catch {
    return 0;
  }
}
