import { isoNow } from '../../entry/ports.ts';
import { later } from '../../run/lease.ts';
import { hasOpenSession, type OpenSessionStep, SEEN_STORED_EVERY_MS } from '../../run/session.ts';
import { isFinished } from '../../run/step.ts';
import { changeRun } from '../change-run.ts';
import { concludeRun } from '../conclusion/conclude-run.ts';
import type { RunChanger } from '../run-changer.ts';
import { assertIsFor, openSession, type SessionTarget, sessionClosed } from './open-session.ts';
import { seen } from './propose-action.ts';

/** A session whose provider says that it has ended may still be about to send its completion. */
const COMPLETES_WITHIN_MS = 60_000;

/**
 * Records that a session is active. A heartbeat within minutes of another costs one read and no commit. With `hasEnded`, its
 * provider says that it has ended: the worker checks it soon.
 */
export async function noteHeartbeat(
  changer: RunChanger,
  target: SessionTarget,
  { hasEnded = false }: { hasEnded?: boolean } = {},
): Promise<{ until: string }> {
  const stored = await changer.runs.runAndStep(target.tenant, target.runId, target.stepIndex);
  if (stored && hasOpenSession(stored.step)) assertIsFor(target, stored.step);
  if (stored && hasOpenSession(stored.step) && !hasEnded && isRecent(stored.step, isoNow(changer.clock))) {
    return { until: stored.step.awaits.until };
  }
  // Agents also notify of the end of a task that has completed: that must not load the run.
  if (stored?.step && isFinished(stored.step)) throw sessionClosed('its step has ended');
  let until = '';
  await changeRun(changer, target, async (state, draft) => {
    const step = openSession(state, target, draft.at);
    until = step.awaits.until;
    const soon = later(draft.at, COMPLETES_WITHIN_MS);
    if (hasEnded ? step.awaits.lookAt <= soon : isRecent(step, draft.at)) return undefined;
    const now = hasEnded ? { ...step, awaits: { ...step.awaits, lookAt: soon } } : seen(step, draft.at);
    const by = hasEnded ? 'provider' : 'heartbeat';
    draft.put(now).record({ type: 'session.seen', step: step.id, index: step.index, by });
    const next = await concludeRun(changer.runs, state, draft);
    return hasEnded ? next : {};
  });
  return { until };
}

const isRecent = ({ session }: OpenSessionStep, now: string): boolean =>
  later(session.seenAt, SEEN_STORED_EVERY_MS) > now;
