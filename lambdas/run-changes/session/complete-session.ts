import { hashOf } from '../../run/canonical-json.ts';
import { CountersignError, recordedError } from '../../run/errors.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import {
  type OpenSessionStep,
  type SessionCompletion,
  type SessionFacts,
  type SessionOutcome,
  sessionActor,
} from '../../run/session.ts';
import { changeRun } from '../change-run.ts';
import { concludeRun } from '../conclusion/conclude-run.ts';
import type { RunChanger } from '../run-changer.ts';
import { fail, succeed } from '../step-endings.ts';
import { openSession, type SessionTarget } from './open-session.ts';

export interface Completion {
  completionId: string;
  outcome: SessionOutcome;
  summary: string;
  output?: unknown;
}

/**
 * A session reports its outcome: the step ends, in one commit with everything that follows from it. The same completion again
 * changes nothing. The first one counts: another content, a late one, or one after the worker gave the session up is refused.
 */
export async function completeSession(
  changer: RunChanger,
  target: SessionTarget,
  completion: Completion,
): Promise<{ outcome: SessionOutcome; isRepeated: boolean }> {
  const { tenant, runId, stepIndex } = target;
  const { outcome } = completion;
  let isRepeated = false;
  const complete = () =>
    changeRun(changer, target, async (state, draft, noFreeSlot) => {
      isRepeated = isSameCompletion(state.steps.get(stepIndex)?.session, completion);
      if (isRepeated) return undefined;
      endStep(draft, openSession(state, target, draft.at), completion);
      return concludeRun(changer.runs, state, draft, { noFreeSlot });
    });
  try {
    await complete();
  } catch (error) {
    // A run that has ended does not change. Its step says whether this completion has ended it.
    if (!(error instanceof CountersignError) || error.code !== 'RUN_TERMINAL_STATE') throw error;
    const stored = await changer.runs.runAndStep(tenant, runId, stepIndex);
    if (!isSameCompletion(stored?.step?.session, completion)) throw error;
    return { outcome, isRepeated: true };
  }
  return { outcome, isRepeated };
}

/** True for the completion that is stored, false if none is. Throws COMPLETION_MISMATCH for another one. */
function isSameCompletion(session: SessionFacts | undefined, completion: Completion): boolean {
  if (session && session.completionId !== completion.completionId) {
    throw mismatch('the completion id is not that of this session; use the one of the prompt');
  }
  const stored = session?.completion;
  if (!stored) return false;
  if (stored.hash === hashOfCompletion(completion)) return true;
  throw mismatch(`the session completed at ${stored.at} with another content; the first completion counts`);
}

const mismatch = (message: string) => new CountersignError('COMPLETION_MISMATCH', message);

const hashOfCompletion = ({ outcome, summary, output }: Completion): string =>
  hashOf({ outcome, summary, output: output ?? null });

function endStep(draft: RunDraft, open: OpenSessionStep, completion: Completion): void {
  const { outcome, summary, output } = completion;
  const { session: facts, id, index, receiptKey } = open;
  const stored: SessionCompletion = { hash: hashOfCompletion(completion), outcome, at: draft.at };
  const step = { ...open, session: { ...facts, seenAt: draft.at, completion: stored } };
  const actor = sessionActor(facts);
  const by = { initiator: 'agent' as const, actor };
  // What it returns may be part of later writes.
  draft
    .addMaker(actor)
    .causedBy(by)
    .record({
      type: 'session.completed',
      ...{ step: id, index, outcome, actor, completionId: facts.completionId, completionHash: stored.hash },
      actions: facts.actions.length,
    });
  if (outcome === 'succeeded') {
    succeed(draft, step, { output: { outcome, summary, output: output ?? null, actions: facts.actions }, receiptKey });
    return;
  }
  const code = outcome === 'needs_human' ? 'SESSION_NEEDS_HUMAN' : 'SESSION_FAILED';
  fail(draft, step, recordedError(code, `the session reported: ${summary}`), { by, receiptKey });
}
