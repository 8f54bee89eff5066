import { findOperation } from '../connectors/registry.ts';
import { triggerView } from '../pipeline/match-automations.ts';
import { idInExpressions, type Run, type Trigger } from '../run/run.ts';
import type { Steps, SucceededStep } from '../run/step.ts';
import { type Expressions, render, type Scope, type ValuesRequired } from '../workflow/expressions/expressions.ts';
import { type KnownSteps, scopedContext } from '../workflow/step-scope.ts';
import { renderInput } from '../workflow/url-template.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import { renderKnown, wholeUrlAsFarAsKnown } from './known-after-apply.ts';

/** Renders the templates of a workflow. */
export interface Values {
  render(template: unknown, required?: ValuesRequired): Promise<unknown>;
  /** Joins the rendered parts of a URL. */
  joinUrl?: (parts: readonly unknown[]) => unknown;
}

/** The values of a run for one of its steps: its trigger, its enrichment, its inputs, and the outputs of the steps so far. */
export function runValues(
  { expressions }: { expressions: Expressions },
  { trigger }: { trigger: Trigger },
  { run, steps }: { run: Run; steps: Steps },
  step: Pick<WorkflowStep, 'scope'> | undefined,
): Values {
  const outputs = [...steps.values()].flatMap((step) =>
    step.status === 'succeeded' ? [[step.id, { output: step.output }] as const] : [],
  );
  const ofRun = {
    trigger: triggerView(trigger),
    enrichment: run.enrichment,
    inputs: run.inputs ?? {},
    steps: Object.fromEntries(outputs),
    run: { id: idInExpressions(run) },
  };
  const context = scopedContext(ofRun, step?.scope);
  return { render: (template, required) => render({ expressions, tenant: run.tenant, context }, template, required) };
}

/** What the started steps of a run say about the loops and calls of later ones. */
export function knownSteps(steps: Steps): KnownSteps {
  const find = (id: string) => [...steps.values()].find((step) => step.id === id && step.status === 'succeeded');
  const succeeded = (id: string) => find(id) as SucceededStep | undefined;
  return {
    leader: (id) => {
      const step = succeeded(id);
      return step && (step.skipped ? 'skipped' : 'runs');
    },
    output: (id) => succeeded(id)?.output,
  };
}

/** The values of a plan, some of which are known only after apply. */
export const plannedValues = (scope: Scope): Values => ({
  render: (template, required) => renderKnown(scope, template, required),
  joinUrl: wholeUrlAsFarAsKnown,
});

/** A call needs every value. A step without a connector may pass on a missing value, but not as empty text. */
export async function stepInput({ render, joinUrl }: Values, step: WorkflowStep): Promise<unknown> {
  if (step.action) return step.action.input;
  const operation = findOperation(step.tool);
  const required = operation ? 'everywhere' : 'in_text';
  return renderInput(operation, step.with, (template) => render(template, required), joinUrl);
}
