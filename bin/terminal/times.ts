const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `now`, `42s`, `5m`, or `in 5m` for a time in the future. */
export function age(at: string, nowMs: number): string {
  const passedMs = nowMs - Date.parse(at);
  if (Math.abs(passedMs) < SECOND_MS) return 'now';
  return passedMs > 0 ? short(passedMs) : `in ${short(-passedMs)}`;
}

export function ago(at: string, nowMs: number): string {
  const passed = age(at, nowMs);
  return passed === 'now' || passed.startsWith('in ') ? passed : `${passed} ago`;
}

function short(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)}s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)}m`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)}h`;
  return `${Math.floor(ms / DAY_MS)}d`;
}

/** `362 ms`, `4.1 s`, `1 min 12 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < SECOND_MS) return `${ms} ms`;
  if (ms < MINUTE_MS) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const [large, small, units] =
    ms < HOUR_MS ? [MINUTE_MS, SECOND_MS, ['min', 's']] : [HOUR_MS, MINUTE_MS, ['h', 'min']];
  return `${Math.floor(ms / large)} ${units[0]} ${Math.floor((ms % large) / small)} ${units[1]}`;
}

/** `02:11:37.138`, in UTC like all times of the API. */
export const clockTime = (at: string) => at.slice(11, 23);

/** The time of day, with the date if it is not the same day as `near`. */
export const clockNear = (at: string, near: string) =>
  at.slice(0, 10) === near.slice(0, 10) ? clockTime(at) : `${at.slice(0, 10)} ${at.slice(11, 19)}`;

export const dateAndTime = (at: string) => `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;

/** With date and milliseconds. */
export const dateAndClock = (at: string) => `${at.slice(0, 10)} ${clockTime(at)}`;
