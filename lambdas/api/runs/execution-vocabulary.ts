import type { ApprovalStatus } from '../../run/approval.ts';
import type { CommitEvent } from '../../run/events/events.ts';
import type { RunStatus } from '../../run/run.ts';
import type { Step } from '../../run/step.ts';

/**
 * Translates our states and events to the vocabulary of source 001 (worker orchestration, 2.1 and 3.2), which the
 * executions API and the live envelope use. Two of its names mean something else than ours: `approval.expired` is an open
 * approval whose SLA has passed (4.3), and `approval.resolved` is every end of an approval, including our expiry.
 */
export const EXECUTION_EVENTS = [
  'session.created',
  'session.assigned',
  'session.paused',
  'session.completed',
  'session.failed',
  'approval.requested',
  'approval.resolved',
  'approval.expired',
  'execution.step.started',
  'execution.step.output',
  'execution.step.completed',
  'execution.step.failed',
  'execution.rollback.started',
  'execution.rollback.completed',
] as const;
export type ExecutionEvent = (typeof EXECUTION_EVENTS)[number];

export const STEP_STATE = {
  pending: 'pending',
  waiting_approval: 'awaiting_approval',
  ready: 'approved',
  running: 'running',
  failed_retryable: 'running',
  waiting_external: 'running',
  succeeded: 'succeeded',
  failed_terminal: 'failed',
  canceled: 'failed',
  rolled_back: 'rolled_back',
} as const satisfies Record<Step['status'] | 'pending', string>;

/** Nobody rejected an approval that its run no longer needs. `expired` is the closest state. */
export const APPROVAL_TASK_STATE = {
  requested: 'pending',
  notified: 'notified',
  approved: 'approved',
  rejected: 'rejected',
  expired: 'expired',
  canceled: 'expired',
} as const satisfies Record<ApprovalStatus, string>;

type StatusChanged = Extract<CommitEvent, { type: 'run.status_changed' }>;

const REACHED: Partial<Record<RunStatus, ExecutionEvent>> = {
  paused: 'session.paused',
  rolling_back: 'execution.rollback.started',
  succeeded: 'session.completed',
  failed_terminal: 'session.failed',
  needs_human: 'session.failed',
  timed_out: 'session.failed',
  canceled: 'session.failed',
};

function statusEvents({ from, to }: StatusChanged): ExecutionEvent[] {
  const left: ExecutionEvent[] = from === 'rolling_back' ? ['execution.rollback.completed'] : [];
  if (from === 'ready' && to === 'running') return ['session.assigned'];
  const reached = REACHED[to];
  return reached ? [...left, reached] : left;
}

/** The names of one of our events there, in order. Empty if source 001 has no name for it. */
export function executionEventsOf(event: CommitEvent): ExecutionEvent[] {
  switch (event.type) {
    case 'run.accepted':
      return ['session.created'];
    case 'run.status_changed':
      return statusEvents(event);
    case 'step.claimed':
      return ['execution.step.started'];
    case 'step.succeeded':
      return ['execution.step.completed'];
    case 'step.failed':
      return ['execution.step.failed'];
    case 'approval.requested':
      return ['approval.requested'];
    case 'approval.overdue':
    case 'approval.escalated':
      return ['approval.expired'];
    case 'approval.decided':
    case 'approval.expired':
    case 'approval.canceled':
      return ['approval.resolved'];
    default:
      return [];
  }
}
