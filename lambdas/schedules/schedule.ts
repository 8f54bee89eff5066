import { Cron } from 'croner';
import * as z from 'zod';
import { didYouMean } from '../entry/did-you-mean.ts';
import type { ErrorCode } from '../run/errors.ts';

const CATCH_UP_MAX_RUNS = 100;

/** When an automation runs without an event. */
export const Schedule = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'use lower-case letters, digits and dashes; start with a letter'),
  description: z.string().max(500).optional(),
  enabled: z.boolean().default(true),
  automation: z.string().max(63),
  /** Minute, hour, day of the month, month, day of the week: `0 9 * * 1-5`. */
  cron: z.string().max(100).optional(),
  /** `15 minutes`, `1 hour`, `2 days`: at multiples of it since 1970 in UTC. */
  rate: z.string().max(20).optional(),
  /** For `cron`, e.g. `Europe/Berlin`. */
  timeZone: z.string().max(60).default('UTC'),
  inputs: z.record(z.string(), z.json()).optional(),
  title: z.string().trim().min(1).max(300).optional(),
  /** What happens with slots that were missed during an outage: none, one run for all, or a run for each. */
  catchUp: z.enum(['skip', 'one', 'all']).default('skip'),
  /** For `all`: at most this many runs, for the newest missed slots. */
  catchUpMax: z.int().min(1).max(CATCH_UP_MAX_RUNS).default(10),
});
export type Schedule = z.infer<typeof Schedule>;

/** The schedule and the people whose values are in its runs: the person who saved it, and the one who enabled it. */
export type StoredSchedule = Schedule & { makers: string[] };

/** What has happened to a schedule, and its next slot. It changes without an entry in the history of changes. */
export interface ScheduleState {
  tenant: string;
  name: string;
  /** Grows with every change, so that two sweeps cannot both advance it. */
  revision: number;
  /** Absent while the schedule is disabled, or if it has no further slot. */
  nextSlot?: string;
  lastRun?: { slot: string; runId: string };
  /** Why the last slot started no run. */
  lastError?: { slot: string; at: string; code: ErrorCode; message: string };
  /** Slots that started no run because they were missed. */
  missed?: { slots: number; lastSlot: string };
}

const MINUTE_MS = 60_000;
const UNITS_MS = { minute: MINUTE_MS, hour: 60 * MINUTE_MS, day: 24 * 60 * MINUTE_MS };
const RATE = /^([1-9]\d{0,3}) (minute|hour|day)s?$/;
const RATE_MAX_MS = 366 * UNITS_MS.day;

/** What is wrong with the times of a schedule; undefined if it has slots. */
export function scheduleProblem(
  schedule: Pick<Schedule, 'cron' | 'rate' | 'timeZone'>,
  now: string,
): string | undefined {
  const { cron, rate, timeZone } = schedule;
  if ((cron === undefined) === (rate === undefined)) return 'give either `cron` or `rate`';
  if (rate !== undefined) return rateProblem(rate, timeZone);
  const zones = Intl.supportedValuesOf('timeZone');
  if (!isTimeZone(timeZone)) {
    const known = didYouMean(timeZone, zones) || '; write for example Europe/Berlin or UTC';
    return `timeZone: "${timeZone}" is not a time zone${known}`;
  }
  try {
    if (nextSlots(schedule, now, 1).length > 0) return undefined;
    return `cron: "${cron}" never happens`;
  } catch (error) {
    const why = (error as Error).message.replace(/^CronPattern: /, '');
    return `cron: "${cron}" is not valid: ${why}; write minute, hour, day, month, weekday: "0 9 * * 1-5"`;
  }
}

function rateProblem(rate: string, timeZone: string): string | undefined {
  const ms = rateMs(rate);
  if (ms === undefined || ms > RATE_MAX_MS) {
    return `rate: "${rate}" is not valid; write for example "15 minutes", "1 hour" or "2 days", up to 366 days`;
  }
  return timeZone === 'UTC' ? undefined : 'timeZone: a rate has no time zone; use `cron` for times of a day';
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function rateMs(rate: string): number | undefined {
  const [, count, unit] = RATE.exec(rate) ?? [];
  return unit === undefined ? undefined : Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS];
}

type Times = Pick<Schedule, 'cron' | 'rate' | 'timeZone'>;

const cronOf = ({ cron = '', timeZone }: Times): Cron =>
  new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true });

/** The first slots after this time. A slot is an instant, so a change of the clocks neither repeats nor loses one. */
export function nextSlots(times: Times, after: string, count: number): string[] {
  const every = times.rate === undefined ? undefined : rateMs(times.rate);
  if (every !== undefined) {
    const first = Math.floor(Date.parse(after) / every) + 1;
    return Array.from({ length: count }, (_, index) => new Date((first + index) * every).toISOString());
  }
  return cronOf(times)
    .nextRuns(count, new Date(after))
    .map((slot) => slot.toISOString());
}

/** The last slots up to this time, oldest first. */
function slotsUpTo(times: Times, until: string, count: number): string[] {
  const every = times.rate === undefined ? undefined : rateMs(times.rate);
  if (every !== undefined) {
    const last = Math.floor(Date.parse(until) / every);
    return Array.from({ length: count }, (_, index) => new Date((last - count + 1 + index) * every).toISOString());
  }
  // The time itself may be a slot.
  const before = new Date(Date.parse(until) + 1_000);
  return cronOf(times)
    .previousRuns(count, before)
    .map((slot) => slot.toISOString())
    .filter((slot) => slot <= until)
    .reverse();
}

/** A slot that starts later than this was missed. The sweeper looks every minute. */
const ON_TIME_MS = 5 * MINUTE_MS;
/** Older slots are never started. Idempotency records of slots are stored longer, so no slot starts two runs. */
const CATCH_UP_WINDOW_MS = 7 * 24 * 60 * MINUTE_MS;
/** The slots of `ON_TIME_MS` at one per minute, and one more to be sure. */
const ON_TIME_MAX_SLOTS = ON_TIME_MS / MINUTE_MS + 1;

export interface DueSlots {
  /** The slots to start a run for, oldest first. */
  start: string[];
  /** Missed slots for which none is started: how many of the newest are known, and the newest. */
  missed: string[];
  next?: string;
}

/** Which slots from `nextSlot` to now start a run. */
export function dueSlots(schedule: Schedule, nextSlot: string, now: string): DueSlots {
  const { catchUp, catchUpMax } = schedule;
  const nowMs = Date.parse(now);
  const oldest = new Date(nowMs - CATCH_UP_WINDOW_MS).toISOString();
  const onTimeSince = new Date(nowMs - ON_TIME_MS).toISOString();
  const due = slotsUpTo(schedule, now, ON_TIME_MAX_SLOTS + CATCH_UP_MAX_RUNS).filter((slot) => slot >= nextSlot);
  const missed = due.filter((slot) => slot < onTimeSince);
  const wanted = catchUp === 'skip' ? 0 : catchUp === 'one' ? 1 : catchUpMax;
  const caughtUp = wanted === 0 ? [] : missed.slice(-wanted).filter((slot) => slot >= oldest);
  const [next] = nextSlots(schedule, now, 1);
  return {
    start: [...caughtUp, ...due.filter((slot) => slot >= onTimeSince)],
    missed: missed.filter((slot) => !caughtUp.includes(slot)),
    ...(next !== undefined && { next }),
  };
}
