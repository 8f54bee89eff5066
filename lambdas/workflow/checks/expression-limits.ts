import { CountersignError } from '../../run/errors.ts';
import { planOf } from '../expressions/expression-plan.ts';
import type { ExpressionContext, Expressions } from '../expressions/expressions.ts';
import { expressionsIn } from '../expressions/template.ts';
import type { Workflow } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';

/** The caller waits for these checks. Expressions that are not checked in this time are limited when they run. */
const TRIES_MAX_MS = 600;
const TRY_MAX_MS = 200;

/** An expression that takes too long on an empty context always takes too long. */
const EMPTY_CONTEXT: ExpressionContext = { trigger: {}, enrichment: {}, inputs: {}, steps: {}, run: { id: '' } };

/** Finds the first expression that exceeds the limits even with an empty context. */
export function triedWorkflow(expressions: Expressions, tenant: string, workflow: Workflow): Promise<Problem[]> {
  const { concurrencyKey, steps, outputs } = workflow;
  const templates = steps.map((step) => ({
    with: step.with,
    when: step.when,
    confidence: step.confidence,
    message: step.message,
  }));
  return tried(expressions, tenant, { concurrencyKey, steps: templates, outputs });
}

type Found = ReturnType<typeof expressionsIn>[number];

export async function tried(expressions: Expressions, tenant: string, template: unknown): Promise<Problem[]> {
  const budget = { leftMs: TRIES_MAX_MS, eachMs: TRY_MAX_MS };
  const bySource = new Map(
    expressionsIn(template)
      .map((each) => [each.source, each])
      .reverse() as [string, Found][],
  );
  const sources = [...bySource.values()].filter(({ source }) => planOf(source).direct === undefined);
  for (const { path, source } of sources) {
    if (budget.leftMs < budget.eachMs) break;
    const exceeded = await exceeds(expressions.evaluate({ tenant, sources: [source], context: EMPTY_CONTEXT, budget }));
    if (exceeded) return [{ path, message: exceeded.message }];
  }
  return [];
}

/** Ignores other errors: an empty context causes many. */
async function exceeds(evaluated: Promise<unknown>): Promise<CountersignError | undefined> {
  try {
    await evaluated;
    return undefined;
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return error.code === 'EXPRESSION_LIMIT_EXCEEDED' ? error : undefined;
  }
}
