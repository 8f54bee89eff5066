import { BEDROCK } from '../connectors/connections.ts';
import type { Names, Operation } from '../connectors/connector.ts';
import { isoNow } from '../entry/ports.ts';
import { stricter } from '../policy/approval-requirement.ts';
import { gateFor } from '../policy/gates.ts';
import type { ApprovalRequirement, PolicyDecision, ProposedAction } from '../policy/policy.ts';
import { findDuplicateWrite } from '../proposal/find-duplicate-write.ts';
import { containsUnknown, KNOWN_AFTER_APPLY } from '../proposal/known-after-apply.ts';
import { type DecidedCall, decideOnCall, proposeCall } from '../proposal/propose-call.ts';
import type { GateReason } from '../run/approval.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { Effect, TouchedState } from '../run/receipt.ts';
import { withOneMoreWrite } from '../run/settings/caps.ts';
import { missingOutputs } from '../workflow/expressions/missing-outputs.ts';
import type { DerivedTarget } from '../workflow/model-flow.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import type { Planner, PlanRequest } from './plan.ts';
import { leaveWritten, plannedNames, readBeforeWrite, readNow, type Seen } from './planned-target.ts';
import { valuesOf, type Walk } from './walk.ts';

export type PlannedGate = { asks: GateReason } & ApprovalRequirement;

/** What has made the identical write: a run, or an earlier step of this plan. */
export type MadeBy = { runId: string } | { step: string };

/** One call to a target, as the run would make it. */
export interface PlannedCall {
  effect: Effect;
  target: string;
  fields: Record<string, unknown>;
  /** Some values are known after apply; policy decides again then, and may decide otherwise. */
  provisional: boolean;
  risk: ProposedAction['risk'];
  reversible: boolean;
  destructive: boolean;
  /** The parts of the target that a model would fill or choose. */
  derived: DerivedTarget[];
  decision: PolicyDecision;
  outcome: 'runs' | 'needs_approval' | 'denied';
  /** Who must approve first. */
  gate: PlannedGate | null;
  /** The step of the same phase whose approval covers this write too. */
  coveredBy: string | null;
  /** The identical write is already made: nothing is written, and no approval is needed. */
  madeBy: MadeBy | null;
  /** The current values with the changes of earlier steps of the plan, and the values after the write. */
  before: TouchedState | null;
  after: TouchedState | null;
  /** Names behind the values, for people. Not part of the plan's hash. */
  names?: Names;
  /** The fields that the workflow gives by name. Their values are the ids that the plan has read. */
  foundByName?: string[];
  beforeHash: string | null;
  /** Why the target was not read. */
  unread: string | null;
}

export interface CallingStep {
  index: number;
  reached: boolean;
  conditional: boolean;
  step: WorkflowStep;
  operation: Operation;
  input: unknown;
}

export async function planCall(
  planner: Planner,
  request: PlanRequest,
  walk: Walk,
  calling: CallingStep,
): Promise<{ call: PlannedCall; output: unknown }> {
  const { operation, index } = calling;
  const { tenant, workflow } = request;
  const instance = await instanceOf(planner, tenant, operation);
  const { input, foundByName, unresolved } = await plannedNames(planner, walk, tenant, calling, request.stubs);
  const proposed = proposeCall({ operation, input, instance });
  const isWrite = operation.effect !== 'read';
  const stub = request.stubs && (request.stubs[calling.step.id] ?? {});
  const found: Seen = stub ?? (isWrite ? await readBeforeWrite(planner, walk, tenant, proposed) : {});
  const decided = await decideOnCall(
    planner,
    plannedRun(request, walk),
    proposed,
    { workflow, index, makers: walk.makers },
    { at: isoNow(planner.clock), trigger: request.trigger, before: found.before },
  );
  const { action, decision, proposal } = decided;
  const allowed = decision.verdict !== 'deny';
  const duplicate =
    isWrite && allowed ? await duplicateOf(planner, walk, tenant, calling, decided, found.before) : undefined;
  if (isWrite && allowed && !duplicate) {
    if (calling.reached) walk.writes = withOneMoreWrite(walk.writes, walk.caps);
    leaveWritten(walk, decided);
  }
  const required = allowed && !duplicate ? await gateOf(planner, request, walk, calling, decided, decision) : null;
  const coveredBy = required && coveringStep(request, walk, calling, required);
  const gate = coveredBy === null ? required : null;
  const outcome = allowed ? (gate ? 'needs_approval' : 'runs') : 'denied';
  const seen = stub || isWrite || outcome !== 'runs' ? found : await readNow(planner, walk, tenant, decided);
  const call: PlannedCall = {
    effect: operation.effect,
    target: action.target,
    fields: action.fields,
    provisional: containsUnknown(input) || unresolved !== undefined,
    risk: action.risk,
    reversible: action.reversible,
    destructive: action.destructive,
    derived: action.derived ?? [],
    decision,
    outcome,
    gate,
    coveredBy,
    madeBy: duplicate?.by ?? null,
    before: seen.before ?? null,
    after: proposal.after ?? null,
    ...(seen.names && { names: seen.names }),
    ...(foundByName && { foundByName }),
    beforeHash: seen.before ? hashOf(seen.before) : null,
    unread: unresolved ?? seen.unread ?? null,
  };
  return { call, output: duplicate?.output ?? seen.output ?? KNOWN_AFTER_APPLY };
}

async function instanceOf(planner: Planner, tenant: string, { connection }: Operation): Promise<string> {
  if (connection === undefined) return '';
  // Models belong to the AWS account: no tenant defines that connection.
  if (connection === BEDROCK) return planner.region;
  const defined = await planner.definitions.connection(tenant, connection);
  if (defined) return defined.instance;
  throw new CountersignError('CONNECTION_MISSING', `${tenant} has no connection "${connection}"; define it first`);
}

function plannedRun({ tenant, automation, workspace, workflow, version, trigger }: PlanRequest, { writes }: Walk) {
  const { source, event } = trigger;
  return {
    tenant,
    automation,
    workspace,
    workflow: { name: workflow.name, version },
    trigger: { source, event, key: 'plan' },
    writes,
  };
}

/** The identical write that the worker would reuse instead of making this one, and the output of its run. */
async function duplicateOf(
  { runs, clock }: Planner,
  { madeBySteps }: Walk,
  tenant: string,
  { step, reached, conditional }: CallingStep,
  { input, proposal: { key, after } }: DecidedCall,
  before: TouchedState | undefined,
): Promise<{ by: MadeBy; output?: unknown } | undefined> {
  if (step.dedupeScope === 'run' || containsUnknown(input)) return undefined;
  const earlier = madeBySteps.get(key);
  if (earlier !== undefined) return { by: { step: earlier } };
  const readBefore = async () => before;
  const duplicate = await findDuplicateWrite(runs, { tenant, key, after, readBefore, at: isoNow(clock) });
  if (duplicate) return { by: { runId: duplicate.runId }, output: duplicate.output };
  if (reached && !conditional) madeBySteps.set(key, step.id);
  return undefined;
}

async function gateOf(
  planner: Planner,
  request: PlanRequest,
  walk: Walk,
  { index, step }: CallingStep,
  { action }: DecidedCall,
  decision: Exclude<PolicyDecision, { verdict: 'deny' }>,
): Promise<PlannedGate | null> {
  const confidence =
    step.confidence === undefined ? undefined : await valuesOf(planner, request, walk, step).render(step.confidence);
  const gate = gateFor({ decision, action, workflow: request.workflow, index, confidence });
  return gate.kind === 'closed' ? { asks: gate.asks, ...gate.requirement } : null;
}

/**
 * In mode `per_phase`: the step whose approval covers this write too. All values of the write must be known when that
 * approval is requested; otherwise it gets its own approval.
 */
function coveringStep(
  { workflow }: PlanRequest,
  { phases, context }: Walk,
  { step }: CallingStep,
  gate: PlannedGate,
): string | null {
  if (workflow.validation?.mode !== 'per_phase') return null;
  const asked = phases.get(step.phase);
  if (asked && missingOutputs(step, (id) => asked.known.has(id)).length === 0) {
    Object.assign(asked.gate, stricter(asked.gate, gate));
    return asked.step;
  }
  phases.set(step.phase, {
    step: step.id,
    gate,
    known: new Set(Object.keys(context.steps).filter((id) => id !== step.id)),
  });
  return null;
}
