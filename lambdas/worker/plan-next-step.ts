import { planGate } from '../approval/plan-gate.ts';
import { triggerView } from '../pipeline/match-automations.ts';
import type { RunDraft } from '../run/commit.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { Run } from '../run/run.ts';
import type { Step } from '../run/step.ts';
import { type ExpressionContext, render } from '../workflow/expressions.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import { planClaim } from './plan-claim.ts';
import {
  endRun,
  expectedVersion,
  planFailure,
  planHandBack,
  type Steps,
  stepFacts,
  succeeded,
} from './plan-endings.ts';
import type { HeldReceipts, Plan, RunState, Worker } from './worker.ts';

/** Steps that touch nothing outside are done within a commit; a transaction holds 100 rows, so not without end. */
const INNER_STEPS_PER_COMMIT_MAX = 20;

/** Goes on at `index`: past steps that need no work outside, to the next write, a gate, or the end of the run. */
export async function planNextStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  before: Steps,
  from: number,
  known: HeldReceipts,
): Promise<Plan> {
  let steps = new Map(before);
  for (let index = from; ; index += 1) {
    const definition = state.workflow.steps[index];
    if (!definition) return endRun(draft, steps, 'succeeded');
    if (index - from >= INNER_STEPS_PER_COMMIT_MAX || (index > from && !worker.hasTime())) {
      return planHandBack(draft, steps, definition, index);
    }
    const facts = stepFacts(definition, index, steps.get(index), draft.at);
    try {
      const inner = await innerResult(definition, state, draft.run, steps);
      if (inner) {
        const done: Step = { ...facts, status: 'succeeded', completedAt: draft.at, ...inner };
        draft.writeStep(done, expectedVersion(steps, index)).record(succeeded(done));
        steps.set(index, done);
        continue;
      }
      if (definition.tool === 'approval') return planGate(worker, draft, steps, facts, expectedVersion(steps, index));
      const input = await render(definition.with, expressionContext(state, draft.run, steps));
      const plan = await planClaim(worker, state, draft, steps, { step: { ...facts, input }, unsettled: false }, known);
      if (!plan.reused) return plan;
      steps = new Map(plan.steps);
    } catch (error) {
      if (!(error instanceof CountersignError)) throw error;
      return planFailure(draft, steps, facts, recordedError(error.code, error.message));
    }
  }
}

/** The output of a step that is skipped or only transforms data; undefined for one that reaches outside. */
async function innerResult(
  definition: WorkflowStep,
  state: RunState,
  run: Run,
  steps: Steps,
): Promise<{ output: unknown; skipped?: true } | undefined> {
  const context = expressionContext(state, run, steps);
  if (definition.when !== undefined && (await render(definition.when, context)) !== true) {
    return { output: null, skipped: true };
  }
  return definition.tool === 'transform' ? { output: await render(definition.with, context) } : undefined;
}

function expressionContext(state: RunState, run: Run, steps: Steps): ExpressionContext {
  const outputs = [...steps.values()].flatMap((step) =>
    step.status === 'succeeded' ? [[step.id, { output: step.output }] as const] : [],
  );
  return {
    trigger: triggerView(state.trigger),
    enrichment: run.enrichment,
    steps: Object.fromEntries(outputs),
    run: { id: run.runId },
  };
}
