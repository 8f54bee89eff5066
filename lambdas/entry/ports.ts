/** Time, randomness and ids are injected, so that a failing test can be repeated exactly. */
export interface Clock {
  now(): number;
}

export interface Ids {
  next(prefix: string): string;
}

export interface Log {
  info(message: string, details?: Record<string, unknown>): void;
  warn(message: string, details?: Record<string, unknown>): void;
  error(message: string, details?: Record<string, unknown>): void;
}

export const isoNow = (clock: Clock) => new Date(clock.now()).toISOString();
