import { randomBytes } from 'node:crypto';
import { Logger } from '@aws-lambda-powertools/logger';
import { loggedError } from './logged-error.ts';
import type { Clock, Ids, Log } from './ports.ts';

/** The real clock, ids, timers and log. Only entry points use them. */
export const systemClock: Clock = { now: () => Date.now() };

export const systemIds: Ids = { next: (prefix) => `${prefix}_${randomBytes(16).toString('hex')}` };

export const systemPause = {
  random: Math.random,
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
};

export function systemEvery(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms);
  return () => clearInterval(timer);
}

/** Measures durations with a monotonic clock. */
export const systemStopwatch = {
  nowMs: () => performance.now(),
  after: (ms: number, act: () => void) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
};

const logger = new Logger({ serviceName: 'countersign' });

export const systemLog: Log = {
  info: (message, details = {}) => logger.info(message, details),
  warn: (message, details = {}) => logger.warn(message, withError(details)),
  error: (message, details = {}) => logger.error(message, withError(details)),
};

function withError({ error, ...details }: Record<string, unknown>): Record<string, unknown> {
  if (error === undefined) return details;
  return { ...details, error: loggedError(error) };
}
