import { withinDeadline } from '../../connectors/attempt-deadline.ts';
import { a2aProvider } from '../../connectors/session/a2a-provider.ts';
import type { SessionState } from '../../connectors/session/session-provider.ts';
import { AttemptTime, readTime } from '../../proposal/attempt-time.ts';
import { CountersignError, recordedError } from '../../run/errors.ts';
import type { SessionLoss } from '../../run/events/session-events.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { OpenSessionStep } from '../../run/session.ts';
import { TIMEOUT } from '../../run-changes/conclusion/next-status.ts';
import { controlRun } from '../../run-changes/control/control-run.ts';
import { fail } from '../../run-changes/step-endings.ts';
import type { EndedSession, StepMessage } from '../../run-changes/step-queue.ts';
import type { Worker } from '../worker.ts';

const LOST: Record<SessionLoss, string> = {
  missing: 'its provider does not know the session',
  ended: 'the session ended without a completion',
  dead: 'the session failed at its provider',
  silent: 'the session was silent for 30 minutes',
};

/**
 * Checks a session that is due: its deadline has passed, or it was not active for 30 minutes. A completion that is committed
 * first wins, because the step is then no longer open; otherwise this commit wins, and a later completion is refused.
 * If the provider cannot be asked, nothing changes, and the sweeper sends the run again.
 */
export async function finalizeSession(worker: Worker, draft: RunDraft, step: OpenSessionStep): Promise<void> {
  const { awaits, session, receiptKey } = step;
  if (awaits.until <= draft.at) {
    const error = recordedError('SESSION_TIMED_OUT', `the session did not complete before ${awaits.until}`);
    fail(draft, step, error, { by: TIMEOUT, receiptKey });
    return;
  }
  const isDue = awaits.lookAt <= draft.at;
  if (!isDue && !session.isCommand) return;
  const state = await stateOf(worker, draft.run, step);
  if (state === undefined || (state === 'working' && !isDue)) return;
  const because: SessionLoss = state === 'working' ? 'silent' : state;
  const { id, index } = step;
  draft.record({ type: 'session.lost', step: id, index, because, seenAt: session.seenAt });
  fail(draft, step, recordedError('SESSION_LOST', LOST[because]), { by: TIMEOUT, receiptKey });
}

/** Undefined if the provider could not be asked. */
async function stateOf(
  worker: Worker,
  run: RunDraft['run'],
  { session: { at, sessionId, isCommand }, id, index }: OpenSessionStep,
): Promise<SessionState | undefined> {
  const { tenant } = run;
  if (isCommand) return stateOfCommand((await worker.runs.load(tenant, sessionId))?.run);
  if (!at) return 'missing';
  try {
    const access = await worker.connections.open(tenant, at.connection);
    const time = readTime(worker, run, index);
    return await withinDeadline(time, () => a2aProvider.state(access, at.url, sessionId));
  } catch (error) {
    worker.log.warn('the state of a session could not be read; the worker asks again', { tenant, step: id, error });
    return undefined;
  }
}

function stateOfCommand(run: Run | undefined): SessionState {
  if (!run) return 'missing';
  if (!isTerminal(run)) return 'working';
  return run.status === 'succeeded' ? 'ended' : 'dead';
}

/** After the step has ended, asks the provider to end the session. Best effort: a lost message leaves it to its provider. */
export async function endSession(
  worker: Worker,
  { tenant, runId }: StepMessage,
  { sessionId, traceparent, ...place }: EndedSession,
): Promise<void> {
  try {
    if ('canceledBy' in place) {
      const command = { kind: 'cancel' as const, reason: 'its session has ended' };
      await controlRun(worker, { tenant, runId: sessionId }, command, place.canceledBy);
      return;
    }
    const { url, connection } = place;
    const access = await worker.connections.open(tenant, connection);
    const time = new AttemptTime(worker, { traceparent });
    await withinDeadline(time, () => a2aProvider.end(access, url, sessionId));
  } catch (error) {
    // A command that has ended, which is often why the session was lost.
    if (error instanceof CountersignError && error.code === 'RUN_TERMINAL_STATE') return;
    worker.log.warn('a session could not be ended', { tenant, runId, error });
  }
}
