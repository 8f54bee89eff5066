import type { OpenSessionStep, SessionFacts } from '../../../lambdas/run/session.ts';
import { draftAndCommit, loadState } from '../../../lambdas/run-changes/commit-run.ts';
import { concludeRun } from '../../../lambdas/run-changes/conclusion/conclude-run.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import type { Workshop } from '../workshop.ts';

const WORKFLOW = `
name: triage
steps:
  - { id: session, tool: wait.external, with: { event: done } }
`;
export const ISSUE_FIELDS = { owner: 'octo-org', repo: 'payments', number: 7 };

/** The run of a session, and when its token expires. */
export type BegunSession = StepMessage & { expiresAt: string };

/** A run whose only step waits for a session that may label and assign one issue. */
export async function beginWithSession(shop: Workshop, differing: Partial<SessionFacts> = {}): Promise<BegunSession> {
  const parent = await shop.begin(WORKFLOW);
  await shop.work(parent);
  const state = await loadState(shop.worker, parent);
  if (!state) throw new Error('no run');
  let expiresAt = '';
  await draftAndCommit(shop.worker, state, async (draft, from) => {
    const step = from.steps.get(0);
    if (step?.status !== 'waiting_external') throw new Error('the step does not wait');
    const { until } = step.awaits;
    expiresAt = until;
    const session: SessionFacts = {
      configuration: 'triage-bot',
      sessionId: 'task-1',
      completionId: 'completion-1',
      startedAt: draft.at,
      seenAt: draft.at,
      actionsAllowed: [
        { tool: 'github.labels.add', with: ISSUE_FIELDS },
        { tool: 'github.assignees.add', with: ISSUE_FIELDS },
      ],
      actionsMax: 3,
      actions: [],
      refused: 0,
      ...differing,
    };
    const open: OpenSessionStep = { ...step, awaits: { kind: 'session', until, lookAt: until }, session };
    draft.put(open).record({ type: 'session.seen', step: open.id, index: open.index, by: 'heartbeat' });
    await concludeRun(shop.worker.runs, from, draft);
    return {};
  });
  return { ...parent, expiresAt };
}
