import type { RunStatus } from '../run.ts';

/** The states of an execution in source 001, 2.1. */
export const EXECUTION_STATES = [
  'queued',
  'assigning_worker',
  'waiting_for_approval',
  'executing',
  'paused',
  'rollback',
  'completed',
  'failed',
  'cancelled',
] as const;

export const EXECUTION_STATE = {
  queued: 'queued',
  enriching: 'queued',
  ready: 'assigning_worker',
  running: 'executing',
  failed_retryable: 'executing',
  waiting_external: 'executing',
  waiting_approval: 'waiting_for_approval',
  paused: 'paused',
  rolling_back: 'rollback',
  succeeded: 'completed',
  failed_terminal: 'failed',
  needs_human: 'failed',
  timed_out: 'failed',
  canceled: 'cancelled',
} as const satisfies Record<RunStatus, (typeof EXECUTION_STATES)[number]>;
