/** EventBridge's `rate(...)` and `cron(...)`, in UTC. What is not understood is refused, never guessed. */

const MINUTE_MS = 60_000;
const UNITS_MS: Record<string, number> = { minute: MINUTE_MS, hour: 60 * MINUTE_MS, day: 1_440 * MINUTE_MS };
const DAY_MS = 1_440 * MINUTE_MS;
/** A cron expression that matches no day in this span (February 30th) never matches; leap days recur within it. */
const SEARCH_DAYS = 366 * 9;
const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

export interface Schedule {
  /** The first slot strictly after `afterMs`, or undefined if there is none. */
  next(afterMs: number): number | undefined;
}

/** A rate counts from `startMs`, the moment at which its rule came to be. */
export function parseSchedule(expression: string, startMs: number): Schedule {
  const [, kind, content] = /^(rate|cron)\((.*)\)$/.exec(expression.trim()) ?? [];
  if (kind === 'rate') return rate(content ?? '', startMs, expression);
  if (kind === 'cron') return cron((content ?? '').trim().split(/\s+/), expression);
  throw new Error(`not a rate(...) or cron(...) expression: ${expression}`);
}

function rate(content: string, startMs: number, expression: string): Schedule {
  const [, value = '', unit = '', plural] = /^(\d+) (minute|hour|day)(s?)$/.exec(content.trim()) ?? [];
  const count = Number(value);
  const periodMs = count * (UNITS_MS[unit] ?? 0);
  if (!(periodMs > 0) || (count === 1) !== (plural === '')) {
    throw new Error(`not a valid rate, such as rate(1 minute) or rate(5 minutes): ${expression}`);
  }
  return { next: (afterMs) => startMs + (Math.floor(Math.max(afterMs - startMs, 0) / periodMs) + 1) * periodMs };
}

function cron(fields: string[], expression: string): Schedule {
  const [minutes = '', hours = '', days = '', months = '', weekdays = '', years = ''] = fields;
  if (fields.length !== 6) throw new Error(`cron needs six fields (minute hour day month weekday year): ${expression}`);
  if ((days === '?') === (weekdays === '?')) {
    throw new Error(`cron needs "?" in exactly one of day and weekday: ${expression}`);
  }
  const set = (text: string, min: number, max: number, names: string[] = [], firstName = 0) =>
    parseField(text, { min, max, names, firstName, expression });
  const minuteSet = set(minutes, 0, 59);
  const hourSet = set(hours, 0, 23);
  const lastDay = days === 'L';
  const daySet = lastDay ? new Set<number>() : set(days, 1, 31);
  const monthSet = set(months, 1, 12, MONTHS, 1);
  const weekdaySet = set(weekdays === 'L' ? '7' : weekdays, 1, 7, WEEKDAYS, 1);
  const yearSet = set(years, 1970, 2199);

  const matchesDay = (date: Date): boolean => {
    const isLast = new Date(date.getTime() + DAY_MS).getUTCDate() === 1;
    return (
      yearSet.has(date.getUTCFullYear()) &&
      monthSet.has(date.getUTCMonth() + 1) &&
      (lastDay ? isLast : daySet.has(date.getUTCDate())) &&
      weekdaySet.has(date.getUTCDay() + 1)
    );
  };
  const slotsOfDay = [...hourSet].flatMap((hour) => [...minuteSet].map((minute) => (hour * 60 + minute) * MINUTE_MS));
  slotsOfDay.sort((a, b) => a - b);
  return {
    next(afterMs) {
      const firstDayMs = Math.floor(afterMs / DAY_MS) * DAY_MS;
      for (let day = 0; day < SEARCH_DAYS; day++) {
        const dayMs = firstDayMs + day * DAY_MS;
        if (!matchesDay(new Date(dayMs))) continue;
        const slot = slotsOfDay.find((offsetMs) => dayMs + offsetMs > afterMs);
        if (slot !== undefined) return dayMs + slot;
      }
      return undefined;
    },
  };
}

interface FieldRules {
  min: number;
  max: number;
  names: string[];
  firstName: number;
  expression: string;
}

/** Lists of `*`, `?`, `n`, `a-b`, each with an optional `/step`. */
function parseField(text: string, rules: FieldRules): Set<number> {
  const values = new Set<number>();
  for (const part of text.toUpperCase().split(',')) {
    const [range = '', step] = part.split('/');
    const [from, to] = bounds(range, step !== undefined, rules);
    const by = step === undefined ? 1 : Number(step);
    const valid = Number.isInteger(from) && Number.isInteger(to) && Number.isInteger(by) && by > 0;
    if (!valid || from < rules.min || to > rules.max || from > to) {
      throw new Error(`cron field "${text}" is not understood: ${rules.expression}`);
    }
    for (let value = from; value <= to; value += by) values.add(value);
  }
  return values;
}

function bounds(range: string, stepped: boolean, { min, max, names, firstName }: FieldRules): [number, number] {
  if (range === '*' || range === '?') return [min, max];
  const numberOf = (word: string) => (names.includes(word) ? names.indexOf(word) + firstName : digits(word));
  const [first = '', last] = range.split('-');
  if (last !== undefined) return [numberOf(first), numberOf(last)];
  return [numberOf(first), stepped ? max : numberOf(first)];
}

function digits(word: string): number {
  return /^\d+$/.test(word) ? Number(word) : Number.NaN;
}
