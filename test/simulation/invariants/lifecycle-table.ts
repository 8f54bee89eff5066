/**
 * The allowed changes of status, copied by hand from the design (lifecycle.md) and not from the engine: an error there must
 * not be repeated here.
 */
export const MAY_FOLLOW: Readonly<Record<string, readonly string[]>> = {
  queued: ['enriching', 'canceled', 'failed_terminal', 'timed_out'],
  enriching: ['ready', 'canceled', 'failed_terminal', 'timed_out'],
  ready: ['running', 'canceled', 'failed_terminal', 'timed_out'],
  running: [
    ...['waiting_approval', 'waiting_external', 'failed_retryable', 'paused', 'rolling_back', 'succeeded'],
    ...['failed_terminal', 'needs_human', 'timed_out', 'canceled'],
  ],
  failed_retryable: ['running', 'paused', 'rolling_back', 'failed_terminal', 'timed_out', 'canceled'],
  waiting_approval: ['running', 'paused', 'rolling_back', 'succeeded', 'failed_terminal', 'canceled'],
  waiting_external: ['running', 'succeeded', 'failed_terminal', 'timed_out', 'canceled'],
  paused: ['running', 'rolling_back', 'failed_terminal', 'canceled'],
  rolling_back: ['failed_terminal', 'canceled', 'needs_human'],
};

export const TERMINAL: ReadonlySet<string> = new Set([
  'succeeded',
  'failed_terminal',
  'needs_human',
  'timed_out',
  'canceled',
]);

/** For a run that undoes the writes of an ended run: it succeeds when they are undone. */
export const MAY_FOLLOW_IN_ROLLBACK_RUN: typeof MAY_FOLLOW = {
  ...MAY_FOLLOW,
  rolling_back: [...(MAY_FOLLOW.rolling_back ?? []), 'succeeded'],
};
