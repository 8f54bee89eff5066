import { SESSION_TOOL } from '../../connectors/session/session.ts';
import { CountersignError, recordedError } from '../../run/errors.ts';
import type { By, RunDraft } from '../../run/run-draft.ts';
import type { RunState } from '../run-changer.ts';
import { fail } from '../step-endings.ts';
import { openSession } from './open-session.ts';

/**
 * A person ends one session: its step fails, and `onFailure` of the workflow decides how the run continues. The commit sends
 * the message that cancels the session at its provider, and a completion that comes later is refused.
 */
export function cancelSession(
  state: RunState,
  draft: RunDraft,
  { step: wanted, reason }: { step?: string; reason?: string },
  by: By,
): void {
  const sessions = [...state.steps.values()].filter(({ session, tool, status }) => {
    const isStarting = tool === SESSION_TOOL && (status === 'running' || status === 'failed_retryable');
    return isStarting || (session !== undefined && status === 'waiting_external');
  });
  const matching = sessions.filter(({ id }) => wanted === undefined || id === wanted);
  const [found, ...others] = matching;
  if (!found) {
    const what = wanted === undefined ? 'no step of this run has' : `step ${wanted} of this run does not have`;
    throw new CountersignError('RUN_INVALID_TRANSITION', `${what} an open session`);
  }
  if (others.length > 0) {
    const steps = matching.map(({ id }) => id).join(', ');
    throw new CountersignError('INPUT_INVALID', `several steps have an open session (${steps}); name one as step`);
  }
  const open = openSession(state, { ...state.run, stepIndex: found.index }, draft.at);
  const { id, index, receiptKey } = open;
  const { actor } = by;
  draft.causedBy(by).record({
    type: 'session.canceled',
    ...{ step: id, index, actor },
    ...(reason !== undefined && { reason }),
  });
  const error = recordedError('SESSION_CANCELED', `${actor} canceled the session`);
  fail(draft, open, error, { by, receiptKey });
}
