import { useSyncExternalStore } from 'react';
import { ago, dateAndTime } from '../../bin/terminal/times.ts';
import { serverNow } from '../data/server-clock.ts';
import { type TimeFormat, usePreferences } from './preferences.ts';

const TICK_MS = 1_000;
let nowMs = serverNow();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** One timer for all relative times of the page. */
function onTick(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) nowMs = serverNow();
  timer ??= setInterval(() => {
    nowMs = serverNow();
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Now, in milliseconds by the clock of the API, which changes every second. */
export const useNow = (): number => useSyncExternalStore(onTick, () => nowMs);

const localFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

function timeText(at: string, format: TimeFormat, now: number): string {
  if (format === 'utc') return dateAndTime(at);
  return format === 'local' ? localFormat.format(new Date(at)) : ago(at, now);
}

/** A time in the format that the person has chosen, with the exact time as tooltip. */
export function PointInTime({ at }: { at: string }) {
  const { times } = usePreferences();
  const now = useNow();
  return (
    <time dateTime={at} title={`${dateAndTime(at)} · ${localFormat.format(new Date(at))}`}>
      {timeText(at, times, now)}
    </time>
  );
}
