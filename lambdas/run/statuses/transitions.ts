import { CountersignError, type RecordedError } from '../errors.ts';
import type { EventOf } from '../events/events.ts';
import type { By } from '../events/run-events.ts';
import {
  type ActiveRun,
  type ActiveStatus,
  isTerminal,
  type Run,
  type RunStatus,
  TERMINAL_STATUSES,
  type TerminalStatus,
} from '../run.ts';

/** The statuses that may follow each status. None follows a terminal status. */
export const ALLOWED_TRANSITIONS: Readonly<Record<ActiveStatus, readonly RunStatus[]>> = {
  queued: ['enriching', 'canceled', 'failed_terminal', 'timed_out'],
  enriching: ['ready', 'canceled', 'failed_terminal', 'timed_out'],
  ready: ['running', 'canceled', 'failed_terminal', 'timed_out'],
  running: [
    'waiting_approval',
    'waiting_external',
    'failed_retryable',
    'paused',
    'rolling_back',
    'succeeded',
    'failed_terminal',
    'needs_human',
    'timed_out',
    'canceled',
  ],
  failed_retryable: ['running', 'paused', 'rolling_back', 'failed_terminal', 'timed_out', 'canceled'],
  waiting_approval: ['running', 'paused', 'rolling_back', 'succeeded', 'failed_terminal', 'canceled'],
  waiting_external: ['running', 'succeeded', 'failed_terminal', 'timed_out', 'canceled'],
  paused: ['running', 'rolling_back', 'failed_terminal', 'canceled'],
  rolling_back: ['failed_terminal', 'canceled', 'needs_human'],
};

type TransitionContext = By & { at: string };

export type StatusChanged = EventOf<'run.status_changed'>;

type Transition = { ok: true; run: Run; event: StatusChanged } | { ok: false; refusal: CountersignError };

/** The only function that changes the status of a run. Pure; never throws. */
export function transition(run: Run, to: RunStatus, context: TransitionContext, error?: RecordedError): Transition {
  if (isTerminal(run)) {
    return refuse('RUN_TERMINAL_STATE', `run ${run.runId} has ended as ${run.status}; a terminal run never changes`);
  }
  // A run that undoes the writes of another run succeeds by that.
  const rollsOtherBack = run.rollbackOf !== undefined && run.status === 'rolling_back' && to === 'succeeded';
  if (!ALLOWED_TRANSITIONS[run.status].includes(to) && !rollsOtherBack) {
    return refuse('RUN_INVALID_TRANSITION', `run ${run.runId} cannot go from ${run.status} to ${to}`);
  }
  const event: StatusChanged = {
    type: 'run.status_changed',
    from: run.status,
    to,
    initiator: context.initiator,
    actor: context.actor,
    ...(context.reason !== undefined && { reason: context.reason }),
    ...(context.approval && { approval: context.approval }),
    ...(context.externalEvent && { externalEvent: context.externalEvent }),
    ...(error !== undefined && { error }),
  };
  return { ok: true, run: isTerminalStatus(to) ? ended(run, to, context.at, error) : { ...run, status: to }, event };
}

function ended(run: Run, status: TerminalStatus, at: string, error?: RecordedError): Run {
  const {
    dueAt: _dueAt,
    currentStep: _currentStep,
    stopRequest: _stopRequest,
    waitingForPeopleSince: _waitingForPeopleSince,
    approvalOverdueSince: _approvalOverdueSince,
    ...facts
  } = run as ActiveRun;
  return {
    ...facts,
    status,
    completedAt: at,
    durationMs: Math.max(0, Date.parse(at) - Date.parse(run.createdAt)),
    ...(error !== undefined && { error }),
  };
}

function isTerminalStatus(status: RunStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly string[]).includes(status);
}

function refuse(code: 'RUN_TERMINAL_STATE' | 'RUN_INVALID_TRANSITION', message: string): Transition {
  return { ok: false, refusal: new CountersignError(code, message) };
}
