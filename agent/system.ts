import type { MachineClock } from './server-clock.ts';

/** Time and randomness of the machine. */
export interface System extends MachineClock {
  /** Ends early if the signal is aborted. */
  sleep(ms: number, until?: AbortSignal): Promise<void>;
  /** From 0 to less than 1. */
  random(): number;
}

const TIMER_MAX_MS = 2 ** 31 - 1;

export const machine: System = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  random: Math.random,
  sleep: (ms, until) =>
    new Promise((resolve) => {
      if (until?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        until?.removeEventListener('abort', end);
        resolve();
      };
      // A longer timer would end at once.
      const timer = setTimeout(end, Math.min(ms, TIMER_MAX_MS));
      until?.addEventListener('abort', end);
    }),
};
