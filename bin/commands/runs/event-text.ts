import { type CommitEvent, describeEvent, kindOf } from '../../../lambdas/run/events/events.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';
import { statusTone } from './run-status.ts';

/** One sentence for an event that was committed at `at`. With `lastStep`, for the same event of several steps. */
export function eventText(event: CommitEvent, at: string, lastStep?: string): string {
  const text = describeEvent(event, (iso) => clockNear(iso, at));
  return lastStep !== undefined && 'step' in event ? text.replace(event.step, `${event.step} to ${lastStep}`) : text;
}

export function eventTone(event: CommitEvent): Tone | undefined {
  if (event.type === 'run.status_changed') return statusTone(event.to);
  return kindOf(event)?.tone?.(event);
}
