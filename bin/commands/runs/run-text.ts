import { type CommitEvent, describeEvent, kindOf } from '../../../lambdas/run/events/events.ts';
import type { RunStatus, TerminalStatus } from '../../../lambdas/run/run.ts';
import type { TonedText } from '../../terminal/table.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';

const TERMINAL: Record<TerminalStatus, Tone> = {
  succeeded: 'good',
  failed_terminal: 'bad',
  needs_human: 'bad',
  timed_out: 'bad',
  canceled: 'quiet',
};

const STATUSES: Record<RunStatus, Tone> = {
  queued: 'quiet',
  enriching: 'busy',
  ready: 'busy',
  running: 'busy',
  rolling_back: 'busy',
  failed_retryable: 'waiting',
  waiting_approval: 'waiting',
  waiting_external: 'waiting',
  paused: 'waiting',
  ...TERMINAL,
};

export const RUN_STATUSES = Object.keys(STATUSES);

export const hasEnded = (status: string) => Object.hasOwn(TERMINAL, status);

/** For runs and steps. A status of a newer server has no tone. */
export const statusCell = (status: string): TonedText => ({
  text: status,
  tone: (STATUSES as Record<string, Tone | undefined>)[status],
});

/** One sentence for an event that was committed at `at`. With `lastStep`, for the same event of several steps. */
export function eventText(event: CommitEvent, at: string, lastStep?: string): string {
  const text = describeEvent(event, (iso) => clockNear(iso, at));
  return lastStep !== undefined && 'step' in event ? text.replace(event.step, `${event.step} to ${lastStep}`) : text;
}

export function eventTone(event: CommitEvent): Tone | undefined {
  if (event.type === 'run.status_changed') return (STATUSES as Record<string, Tone | undefined>)[event.to];
  return kindOf(event)?.tone?.(event);
}
