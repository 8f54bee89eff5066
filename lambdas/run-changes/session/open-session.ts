import { CountersignError } from '../../run/errors.ts';
import { hasOpenSession, type OpenSessionStep } from '../../run/session.ts';
import type { RunState } from '../run-changer.ts';

/** The session that a token names. */
export interface SessionTarget {
  tenant: string;
  runId: string;
  stepIndex: number;
  /** When the token expires. A step that is retried has another session: the token of the one before is not for it. */
  expiresAt?: string;
}

/** The step of an open session. Throws SESSION_CLOSED after its end, and SESSION_STARTING before it is recorded. */
export function openSession({ run, steps }: RunState, target: SessionTarget, at: string): OpenSessionStep {
  const step = steps.get(target.stepIndex);
  if (hasOpenSession(step)) assertIsFor(target, step);
  if (hasOpenSession(step) && step.awaits.until > at && !run.stopRequest) return step;
  if (step?.status === 'running' || step?.status === 'failed_retryable') {
    throw new CountersignError('SESSION_STARTING', 'the session is being started; try again in a few seconds');
  }
  throw sessionClosed(run.stopRequest ? 'the run is being stopped' : 'its step has ended, or its time is over');
}

/** Throws SESSION_CLOSED if the target is an earlier session of the step. */
export function assertIsFor({ expiresAt }: SessionTarget, { awaits }: OpenSessionStep): void {
  if (expiresAt === undefined || expiresAt === awaits.until) return;
  throw sessionClosed('its step was retried with another session');
}

export const sessionClosed = (why: string): CountersignError =>
  new CountersignError('SESSION_CLOSED', `the session is closed: ${why}; stop working on it`);
