import type { RunStatus, TerminalStatus } from '../../../lambdas/run/run.ts';
import type { TonedText } from '../../terminal/table.ts';
import type { Tone } from '../../terminal/terminal.ts';

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
export const statusTone = (status: string): Tone | undefined => (STATUSES as Record<string, Tone | undefined>)[status];
export const statusCell = (status: string): TonedText => ({ text: status, tone: statusTone(status) });
