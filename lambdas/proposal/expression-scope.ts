import { triggerView } from '../pipeline/match-automations.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { Worker } from '../worker/worker.ts';
import type { ExpressionContext, Scope } from '../workflow/expressions/expressions.ts';

/** What the expressions of a run are evaluated with. */
export function expressionScope({ expressions }: Pick<Worker, 'expressions'>, state: RunState, draft: RunDraft): Scope {
  return { expressions, tenant: draft.run.tenant, context: expressionContext(state, draft) };
}

/** All that a workflow's expressions can see: the trigger, what enrichment made of it, and what earlier steps gave. */
function expressionContext(state: RunState, draft: RunDraft): ExpressionContext {
  const outputs = [...draft.steps.values()].flatMap((step) =>
    step.status === 'succeeded' ? [[step.id, { output: step.output }] as const] : [],
  );
  return {
    trigger: triggerView(state.trigger),
    enrichment: draft.run.enrichment,
    steps: Object.fromEntries(outputs),
    run: { id: draft.run.runId },
  };
}
