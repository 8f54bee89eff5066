import type { RunChange } from '../../run/commit.ts';
import type { Run } from '../../run/run.ts';
import { hasOpenSession, sessionActor } from '../../run/session.ts';
import type { Steps } from '../../run/step.ts';
import { stepSpan, traceparentOf } from '../../telemetry/trace-context.ts';
import type { EndedSession } from '../step-queue.ts';

/** A session that has completed gets the response to its completion first, and usually ends by itself. */
const ENDS_ITSELF_WITHIN_MS = 10_000;

/** The sessions whose steps end with this change, and when their providers are asked to end them. */
export function endedSessions(
  { steps }: RunChange,
  before: Steps,
  run: Run,
): { endSession: EndedSession; afterMs: number }[] {
  return steps.flatMap(({ step }) => {
    const { index, session } = step;
    if (!(session?.at || session?.isCommand) || hasOpenSession(step)) return [];
    // A command that has completed its session ends by itself, at the latest after its timeout.
    if (session.isCommand && session.completion) return [];
    const was = before.get(index);
    // The commit that records the start of a session may also end its step, because another step has failed.
    const isNew = was?.session?.sessionId !== session.sessionId;
    if (!(isNew || hasOpenSession(was))) return [];
    const traceparent = traceparentOf(run, stepSpan(index));
    const place = session.at ?? { canceledBy: sessionActor(session) };
    const endSession = { sessionId: session.sessionId, ...place, traceparent };
    return [{ endSession, afterMs: session.completion ? ENDS_ITSELF_WITHIN_MS : 0 }];
  });
}
