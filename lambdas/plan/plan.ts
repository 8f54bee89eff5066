import { missingApprovers, sentenceText } from '../approval/texts/missing-approvers.ts';
import type { Connections } from '../connectors/connections.ts';
import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { enrich } from '../pipeline/enrich.ts';
import type { StartInputs } from '../pipeline/start-inputs.ts';
import type { Environment, Policy } from '../policy/policy.ts';
import { hashOf } from '../run/canonical-json.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Trigger } from '../run/run.ts';
import type { RunReads } from '../run/run-store.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import { inOrder, needsOf } from '../workflow/step-order.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import { type PlannedStep, planStep } from './plan-step.ts';
import { beginWalk, type Walk } from './walk.ts';

export type { PlannedStep } from './plan-step.ts';

/** The ports of the planner. Its connections have credentials that can only read, so it cannot write. */
export interface Planner {
  definitions: Pick<Definitions, 'settings' | 'connection' | 'people'>;
  connections: Connections;
  expressions: Expressions;
  runs: Pick<RunReads, 'receipts'>;
  policy: Policy;
  environment: Environment;
  region: string;
  clock: Clock;
  log: Log;
  /** False when too little time is left to read another target. */
  hasTime: () => boolean;
}

export interface PlanRequest {
  tenant: string;
  automation: string;
  workspace: string;
  workflow: PublishedWorkflow;
  version: number;
  trigger: Trigger;
  /** What the starter gives, and the templates of the automation. */
  inputs?: StartInputs;
  /** By step: what the target would say. With it, nothing is read. */
  stubs?: Readonly<Record<string, StubbedStep>>;
}

export interface StubbedStep {
  /** The current values of what a write changes. */
  before?: TouchedState;
  output?: unknown;
}

/** The worst outcome of the run that the plan can foresee. */
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
  /** Steps whose approval too few people can give now. They do not change what the run would do. */
  warnings: string[];
  plannedAt: string;
  /** Hash of everything above except the warnings and the time. If it is the same again, nothing that the plan depends on has changed. */
  planHash: string;
}

/** Plans the steps in the order of a run, up to each write, without making any. */
export async function planRun(planner: Planner, request: PlanRequest): Promise<Plan> {
  const { workflow, version, automation, trigger } = request;
  const enrichment = enrich(trigger);
  const walk = await beginWalk(planner, request, enrichment);
  const planned = new Map<number, PlannedStep>();
  for (const index of inOrder(workflow)) {
    const reached = needsOf(workflow, index).every((need) => !stops(planned.get(need)));
    planned.set(index, await planStep(planner, request, walk, { index, reached }));
  }
  const inFileOrder = [...planned].sort(([a], [b]) => a - b).map(([, step]) => step);
  const steps = inFileOrder.filter(({ id }) => !walk.omitted.has(id));
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
  const withoutNames = steps.map((step) => ({ ...step, names: undefined }));
  const bound = { content: workflow, received: eventOf(trigger), inputs: walk.context.inputs };
  const planHash = hashOf({ ...plan, steps: withoutNames, ...bound });
  const plannedAt = isoNow(planner.clock);
  return { ...plan, warnings: steps.flatMap((step) => warningOf(step, walk, plannedAt)), plannedAt, planHash };
}

function warningOf(step: PlannedStep, { makers, people }: Walk, at: string): string[] {
  const gate = step.kind === 'gate' || step.kind === 'call' ? step.gate : null;
  if (!gate || !step.reached) return [];
  const { asks: _asks, ...requirement } = gate;
  const missing = missingApprovers({ requirement, makers }, people, at);
  return missing ? [`step ${step.id}: ${sentenceText(missing)}`] : [];
}

/** The event without the time at which it was received. */
const eventOf = ({ fields, payload, makers }: Trigger) => ({ fields, payload, makers });

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
