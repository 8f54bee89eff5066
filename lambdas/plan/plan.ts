import type { Connections } from '../connectors/connections.ts';
import { findOperation } from '../connectors/registry.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import { makersOf } from '../people/people.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { enrich } from '../pipeline/enrich.ts';
import { triggerView } from '../pipeline/match-automations.ts';
import type { Environment, Policy } from '../policy/policy.ts';
import { hashOf } from '../run/canonical-json.ts';
import { type Caps, effectiveCaps } from '../run/caps.ts';
import { parsedInput } from '../run/check-input.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Enrichment, Trigger } from '../run/run.ts';
import type { RunReads } from '../run/run-store.ts';
import type { Step } from '../run/step.ts';
import { EVALUATION_MAX_MS } from '../workflow/expressions/expression-pool.ts';
import {
  type Budget,
  conditionHolds,
  type ExpressionContext,
  type Expressions,
  type Scope,
} from '../workflow/expressions/expressions.ts';
import { GateInput, INNER_TOOL_INPUTS } from '../workflow/inner-tools.ts';
import { inOrder, needsOf } from '../workflow/step-order.ts';
import { renderInput } from '../workflow/url-template.ts';
import type { PublishedWorkflow, WorkflowStep } from '../workflow/workflow.ts';
import { holdsUnknown, KNOWN_AFTER_APPLY, renderKnown, shownValue, wholeUrlAsFarAsKnown } from './known-after-apply.ts';
import { type PlannedCall, type PlannedGate, planCall } from './plan-call.ts';

/** What a plan is made with. It writes nothing, and could not: its connections are opened with credentials that may only read. */
export interface Planner {
  definitions: Pick<Definitions, 'settings' | 'connection' | 'people'>;
  connections: Connections;
  expressions: Expressions;
  runs: Pick<RunReads, 'receipts'>;
  policy: Policy;
  environment: Environment;
  region: string;
  clock: Clock;
  /** False when too little time is left to read from another target. */
  hasTime: () => boolean;
}

export interface PlanRequest {
  tenant: string;
  automation: string;
  workspace: string;
  workflow: PublishedWorkflow;
  version: number;
  trigger: Trigger;
}

/** Whoever asks for a plan waits for it; what is left of the function's time is for reading from targets. */
const EXPRESSIONS_MAX_MS = 5_000;

interface PlannedFacts {
  id: string;
  tool: string;
  /** False behind a step that fails or is denied: the run would not come this far. */
  reached: boolean;
  /** Whether it runs at all depends on what only the run will know. */
  conditional: boolean;
}

export type PlannedStep = PlannedFacts &
  (
    | { kind: 'skipped' }
    | { kind: 'inner'; input: unknown }
    | { kind: 'gate'; gate: PlannedGate; message: unknown }
    | ({ kind: 'call' } & PlannedCall)
    | { kind: 'failing'; error: RecordedError }
  );

/** The worst that would befall the run, as far as a plan can tell. */
export type PlanOutcome = 'runs' | 'needs_approval' | 'denied' | 'fails';

export interface Plan {
  workflow: { name: string; version: number };
  automation: string;
  trigger: { source: string; event: string };
  title: string;
  environment: Environment;
  outcome: PlanOutcome;
  steps: PlannedStep[];
  writes: { planned: number; max: number | null };
  plannedAt: string;
  /** Of all of the above but the time: the same again means that nothing it rests on has changed. */
  planHash: string;
}

/** Where the plan stands: what later steps can refer to, and what earlier writes would have left. */
export interface Walk {
  context: ExpressionContext & { steps: Record<string, { output: unknown }> };
  /** For all expressions of the plan. */
  budget: Budget;
  /** Calls so far, as the rules for gates look at them. */
  begun: Map<number, Step>;
  makers: string[];
  /** The step that asks for each phase, what it asks for, and the steps whose output is known by then. */
  phases: Map<string, { step: string; gate: PlannedGate; known: ReadonlySet<string> }>;
  writes: number;
  caps: Caps;
  /** What is written by the steps so far: by the write's key, which step; which targets; what they leave there. */
  madeBySteps: Map<string, string>;
  written: Set<string>;
  left: Map<string, TouchedState>;
}

/** Walks the steps as a run would, up to each write and not through it. */
export async function planRun(planner: Planner, request: PlanRequest): Promise<Plan> {
  const { workflow, version, automation, trigger } = request;
  const enrichment = enrich(trigger);
  const walk = await beginWalk(planner, request, enrichment);
  const planned = new Map<number, PlannedStep>();
  for (const index of inOrder(workflow)) {
    const reached = needsOf(workflow, index).every((need) => !stops(planned.get(need)));
    planned.set(index, await planStep(planner, request, walk, { index, reached }));
  }
  const steps = [...planned].sort(([a], [b]) => a - b).map(([, step]) => step);
  const plan = {
    workflow: { name: workflow.name, version },
    automation,
    trigger: { source: trigger.source, event: trigger.event },
    title: enrichment.title,
    environment: planner.environment,
    outcome: worst(steps),
    steps,
    writes: { planned: walk.writes, max: walk.caps.maxWritesPerRun ?? null },
  };
  const planHash = hashOf(JSON.parse(JSON.stringify({ ...plan, content: workflow })));
  return { ...plan, plannedAt: isoNow(planner.clock), planHash };
}

async function beginWalk(planner: Planner, request: PlanRequest, enrichment: Enrichment): Promise<Walk> {
  const { tenant, workflow, trigger } = request;
  const [settings, people] = await Promise.all([
    planner.definitions.settings(tenant),
    planner.definitions.people(tenant),
  ]);
  return {
    context: { trigger: triggerView(trigger), enrichment, steps: {}, run: { id: KNOWN_AFTER_APPLY } },
    budget: { leftMs: EXPRESSIONS_MAX_MS, eachMs: EVALUATION_MAX_MS },
    begun: new Map(),
    makers: makersOf(people, { trigger, enrichment, workflow }),
    phases: new Map(),
    writes: 0,
    caps: effectiveCaps(settings.caps, workflow.caps),
    madeBySteps: new Map(),
    written: new Set(),
    left: new Map(),
  };
}

async function planStep(
  planner: Planner,
  request: PlanRequest,
  walk: Walk,
  { index, reached }: { index: number; reached: boolean },
): Promise<PlannedStep> {
  const step = request.workflow.steps[index] as WorkflowStep;
  const facts = { id: step.id, tool: step.tool, reached, conditional: false };
  const handOn = (output: unknown) => {
    walk.context.steps[step.id] = { output: facts.conditional ? KNOWN_AFTER_APPLY : output };
  };
  handOn(KNOWN_AFTER_APPLY);
  const scope = scopeOf(planner, request, walk);
  try {
    const when = step.when === undefined || (await renderKnown(scope, step.when));
    facts.conditional = holdsUnknown(when);
    if (!facts.conditional && !conditionHolds(when)) {
      handOn(null);
      return { ...facts, kind: 'skipped' };
    }
    const operation = findOperation(step.tool);
    const known = (given: unknown) => renderKnown(scope, given);
    const input = await renderInput(operation, step.with, known, wholeUrlAsFarAsKnown);
    if (operation) {
      const { call, output } = await planCall(planner, request, walk, { ...facts, index, step, operation, input });
      handOn(output);
      return { ...facts, kind: 'call', ...call };
    }
    if (step.tool === 'approval') return { ...facts, kind: 'gate', ...gateOf(input) };
    const schema = INNER_TOOL_INPUTS[step.tool];
    if (schema && !holdsUnknown(input)) parsedInput(schema, step.tool, input);
    if (step.tool === 'transform') handOn(input);
    return { ...facts, kind: 'inner', input: shownValue(input) };
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { ...facts, kind: 'failing', error: recordedError(error.code, error.message) };
  }
}

/** What the expressions of a plan are evaluated with. */
export const scopeOf = ({ expressions }: Planner, { tenant }: PlanRequest, { context, budget }: Walk): Scope => ({
  expressions,
  tenant,
  context,
  budget,
});

/** What is not known yet may turn out to be anything: people are then asked as if it were not there. */
function gateOf(input: unknown): { gate: PlannedGate; message: unknown } {
  const known = Object.fromEntries(Object.entries(input as object).filter(([, value]) => !holdsUnknown(value)));
  const { message: _message, ...requirement } = parsedInput(GateInput, 'approval', known);
  const { message = null } = shownValue(input) as { message?: unknown };
  return { gate: { asks: 'step', ...requirement }, message };
}

const stops = (step: PlannedStep | undefined): boolean =>
  step !== undefined && (!step.reached || outcomeOf(step) === 'fails' || outcomeOf(step) === 'denied');

function outcomeOf(step: PlannedStep): PlanOutcome {
  if (step.kind === 'failing') return 'fails';
  if (step.kind === 'gate') return 'needs_approval';
  return step.kind === 'call' ? step.outcome : 'runs';
}

const FROM_WORST: readonly PlanOutcome[] = ['fails', 'denied', 'needs_approval'];

function worst(steps: readonly PlannedStep[]): PlanOutcome {
  const outcomes = new Set(steps.filter(({ reached }) => reached).map(outcomeOf));
  return FROM_WORST.find((outcome) => outcomes.has(outcome)) ?? 'runs';
}
