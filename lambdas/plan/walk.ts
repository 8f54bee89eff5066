import { makersOf, type Person } from '../people/people.ts';
import { triggerView } from '../pipeline/match-automations.ts';
import { startInputs } from '../pipeline/start-inputs.ts';
import { KNOWN_AFTER_APPLY } from '../proposal/known-after-apply.ts';
import { plannedValues, type Values } from '../proposal/run-values.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Enrichment } from '../run/run.ts';
import { type Caps, effectiveCaps } from '../run/settings/caps.ts';
import { EVALUATION_MAX_MS } from '../workflow/expressions/expression-pool.ts';
import type { Budget, ExpressionContext } from '../workflow/expressions/expressions.ts';
import { type KnownSteps, type Leader, scopedContext } from '../workflow/step-scope.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import type { Planner, PlanRequest } from './plan.ts';
import type { PlannedGate } from './plan-call.ts';

/** A person waits for the plan; the rest of the function's time is for reading targets. */
const EXPRESSIONS_MAX_MS = 5_000;

/** The state of a plan between two steps: what later steps can refer to, and what earlier writes would have changed. */
export interface Walk {
  context: ExpressionContext & { steps: Record<string, { output: unknown }> };
  /** For all expressions of the plan. */
  budget: Budget;
  makers: string[];
  people: readonly Person[];
  /** Whether the steps so far run. */
  leaders: Map<string, Leader>;
  /** Steps of loops for which there is no item: the plan does not list them. */
  omitted: Set<string>;
  /** For each phase: the step that requests its approval, the gate, and the steps whose output is known by then. */
  phases: Map<string, { step: string; gate: PlannedGate; known: ReadonlySet<string> }>;
  writes: number;
  caps: Caps;
  /** The writes of the steps so far: the step by the key of its write, the targets, and the values they leave there. */
  madeBySteps: Map<string, string>;
  written: Set<string>;
  left: Map<string, TouchedState>;
  /** Connections whose target asked to wait (Retry-After): the plan reads nothing more there. */
  askedToWait: Set<string>;
}

export async function beginWalk(planner: Planner, request: PlanRequest, enrichment: Enrichment): Promise<Walk> {
  const { tenant, workflow, trigger } = request;
  const budget = { leftMs: EXPRESSIONS_MAX_MS, eachMs: EVALUATION_MAX_MS };
  const scope = { expressions: planner.expressions, tenant, budget };
  const inputs = (await startInputs(scope, workflow, trigger, request.inputs)) ?? {};
  const [settings, people] = await Promise.all([
    planner.definitions.settings(tenant),
    planner.definitions.people(tenant),
  ]);
  return {
    context: { trigger: triggerView(trigger), enrichment, inputs, steps: {}, run: { id: KNOWN_AFTER_APPLY } },
    budget,
    people,
    makers: makersOf(people, { trigger, enrichment, workflow }),
    leaders: new Map(),
    omitted: new Set(),
    phases: new Map(),
    writes: 0,
    caps: effectiveCaps(settings.caps, workflow.caps),
    madeBySteps: new Map(),
    written: new Set(),
    left: new Map(),
    askedToWait: new Set(),
  };
}

export const valuesOf = (
  { expressions }: Planner,
  { tenant }: PlanRequest,
  { context, budget }: Walk,
  { scope }: Pick<WorkflowStep, 'scope'>,
): Values => plannedValues({ expressions, tenant, context: scopedContext(context, scope), budget });

export const knownInPlan = ({ leaders, context }: Walk): KnownSteps => ({
  leader: (id) => leaders.get(id),
  output: (id) => context.steps[id]?.output,
});
