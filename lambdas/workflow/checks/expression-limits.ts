import { CountersignError } from '../../run/errors.ts';
import { planOf } from '../expressions/expression-plan.ts';
import type { ExpressionContext, Expressions } from '../expressions/expressions.ts';
import { expressionsIn } from '../expressions/template.ts';
import type { Workflow } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';

/** Whoever publishes waits for it: what is not tried in this time is left to the limits of a run. */
const TRIES_MAX_MS = 600;
const TRY_MAX_MS = 200;

/** As little as there can be: what takes too long on this takes too long on anything. */
const NOTHING: ExpressionContext = { trigger: {}, enrichment: {}, steps: {}, run: { id: '' } };

/** The first expression of a workflow that exceeds the limits even where it has nothing to work on. */
export function triedWorkflow(expressions: Expressions, tenant: string, workflow: Workflow): Promise<Problem[]> {
  const { concurrencyKey, steps } = workflow;
  const templates = steps.map((step) => ({
    with: step.with,
    when: step.when,
    confidence: step.confidence,
    message: step.message,
  }));
  return tried(expressions, tenant, { concurrencyKey, steps: templates });
}

export async function tried(expressions: Expressions, tenant: string, template: unknown): Promise<Problem[]> {
  const budget = { leftMs: TRIES_MAX_MS, eachMs: TRY_MAX_MS };
  const sources = expressionsIn(template).filter(({ source }) => planOf(source).direct === undefined);
  for (const { path, source } of sources) {
    if (budget.leftMs < budget.eachMs) break;
    const exceeded = await exceeds(expressions.evaluate({ tenant, sources: [source], context: NOTHING, budget }));
    if (exceeded) return [{ path, message: exceeded.message }];
  }
  return [];
}

/** That there is nothing to work on may fail it in many other ways. */
async function exceeds(evaluated: Promise<unknown>): Promise<CountersignError | undefined> {
  try {
    await evaluated;
    return undefined;
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return error.code === 'EXPRESSION_LIMIT_EXCEEDED' ? error : undefined;
  }
}
