import { BEDROCK } from '../connectors/connections.ts';
import { connectorOf, type Operation, type Proposal } from '../connectors/connector.ts';
import { stricter } from '../policy/approval-requirement.ts';
import { gateFor } from '../policy/gates.ts';
import type { ApprovalRequirement, PolicyDecision, ProposedAction } from '../policy/policy.ts';
import { policyRequest, proposedAction } from '../policy/proposed-action.ts';
import type { GateReason } from '../run/approval.ts';
import { hashOf } from '../run/canonical-json.ts';
import { withOneMoreWrite } from '../run/caps.ts';
import { CountersignError } from '../run/errors.ts';
import type { Effect, TouchedState } from '../run/receipt.ts';
import { type Governed, STEP_SCHEMA_VERSION, type Step } from '../run/step.ts';
import { unknownNeeds } from '../workflow/expressions/missing-outputs.ts';
import { type DerivedTarget, derivedTargets } from '../workflow/model-flow.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import { holdsUnknown, KNOWN_AFTER_APPLY, renderKnown, shownValue } from './known-after-apply.ts';
import { type Planner, type PlanRequest, scopeOf, type Walk } from './plan.ts';
import { findDuplicateWrite, type MadeBy } from './planned-duplicate.ts';
import { leaveWritten, lookBeforeWrite, readNow } from './read-planned-target.ts';

export type PlannedGate = { asks: GateReason } & ApprovalRequirement;

/** One call to the outside, as it would be made. */
export interface PlannedCall {
  effect: Effect;
  target: string;
  fields: Record<string, unknown>;
  /** Some of it only the run will know; policy is asked again then, and may say otherwise. */
  provisional: boolean;
  risk: ProposedAction['risk'];
  reversible: boolean;
  destructive: boolean;
  /** What of the target a model would fill or choose. */
  derived: DerivedTarget[];
  decision: PolicyDecision;
  outcome: 'runs' | 'needs_approval' | 'denied';
  /** Who must say yes first. */
  gate: PlannedGate | null;
  /** The step whose approval covers this write too: both are of one phase. */
  coveredBy: string | null;
  /** The identical write was made before: nothing is written, and nobody asked. */
  madeBy: MadeBy | null;
  /** What is there now, with what earlier steps of the plan would have changed; and what would be there after. */
  before: TouchedState | null;
  after: TouchedState | null;
  beforeHash: string | null;
  /** Why the target was not looked at. */
  unread: string | null;
}

export interface CalledStep {
  index: number;
  reached: boolean;
  conditional: boolean;
  step: WorkflowStep;
  operation: Operation;
  input: unknown;
}

interface Prepared extends Proposal {
  /** The input, if it is known well enough to look at the target. */
  parsed: { input: unknown } | undefined;
}

export async function planCall(
  planner: Planner,
  request: PlanRequest,
  walk: Walk,
  called: CalledStep,
): Promise<{ call: PlannedCall; output: unknown }> {
  const { operation, input } = called;
  const { proposal, action } = await propose(planner, request, walk, called);
  const asked = policyRequest(runOf(request, walk), action);
  const decision = await planner.policy.decide(asked);
  const known = { tenant: request.tenant, operation, ...proposal };
  const isWrite = operation.effect !== 'read';
  const found = isWrite ? await lookBeforeWrite(planner, walk, known) : {};
  const willing = decision.verdict !== 'deny';
  const made = isWrite && willing ? await findDuplicateWrite(planner, walk, called, known, found.before) : undefined;
  if (isWrite && willing && !made) {
    if (called.reached) walk.writes = withOneMoreWrite(walk.writes, walk.caps);
    leaveWritten(walk, known);
  }
  const closed = willing && !made ? await gateOf(planner, request, walk, called, action, decision) : null;
  const coveredBy = closed && coveringPhase(request, walk, called, closed);
  const gate = coveredBy === null ? closed : null;
  if (!made) {
    walk.begun.set(called.index, passed(called, { request: asked, decision, ...(gate && { approvalId: 'plan' }) }));
  }
  const outcome = willing ? (gate ? 'needs_approval' : 'runs') : 'denied';
  const seen = isWrite || outcome !== 'runs' ? found : await readNow(planner, walk, known);
  const call: PlannedCall = {
    effect: operation.effect,
    target: action.target,
    fields: action.fields,
    provisional: holdsUnknown(input),
    risk: action.risk,
    reversible: action.reversible,
    destructive: action.destructive,
    derived: action.derived ?? [],
    decision,
    outcome,
    gate,
    coveredBy,
    madeBy: made?.by ?? null,
    before: seen.before ?? null,
    after: proposal.after ?? null,
    beforeHash: seen.before ? hashOf(JSON.parse(JSON.stringify(seen.before))) : null,
    unread: seen.unread ?? null,
  };
  return { call, output: made?.output ?? seen.output ?? KNOWN_AFTER_APPLY };
}

async function propose(
  planner: Planner,
  { tenant, workflow }: PlanRequest,
  { makers }: Walk,
  { operation, step, index, input }: CalledStep,
): Promise<{ proposal: Prepared; action: ProposedAction }> {
  const { environment } = planner;
  const derived = derivedTargets(workflow, index);
  const instance = await instanceOf(planner, tenant, operation);
  const proposal = proposalOf(operation, input, instance);
  const action = proposedAction({
    operation,
    proposal,
    instance,
    definition: step,
    workflow,
    environment,
    derived,
    makers,
  });
  return { proposal, action };
}

async function instanceOf(planner: Planner, tenant: string, { connection }: Operation): Promise<string> {
  if (connection === undefined) return '';
  // Models are the account's: no tenant defines that connection.
  if (connection === BEDROCK) return planner.region;
  const defined = await planner.definitions.connection(tenant, connection);
  if (defined) return defined.instance;
  throw new CountersignError('CONNECTION_MISSING', `${tenant} has no connection "${connection}"; define it first`);
}

/** With values missing, the input may not be one yet: then what is known of it is all there is to show. */
function proposalOf(operation: Operation, input: unknown, instance: string): Prepared {
  const shown = shownValue(input) as Record<string, unknown>;
  try {
    const parsed = operation.parse(shown);
    const proposal = operation.propose(parsed, instance);
    const isKnown = !proposal.target.includes(KNOWN_AFTER_APPLY.shown);
    return { ...proposal, parsed: isKnown ? { input: parsed } : undefined };
  } catch (error) {
    if (!(error instanceof CountersignError) || !holdsUnknown(input)) throw error;
    const target = `${connectorOf(operation.tool)}:${KNOWN_AFTER_APPLY.shown}`;
    return { target, fields: shown, key: '', parsed: undefined };
  }
}

function runOf({ tenant, automation, workspace, workflow, version, trigger }: PlanRequest, { writes }: Walk) {
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

async function gateOf(
  planner: Planner,
  request: PlanRequest,
  walk: Walk,
  { index, step }: CalledStep,
  action: ProposedAction,
  decision: Exclude<PolicyDecision, { verdict: 'deny' }>,
): Promise<PlannedGate | null> {
  const confidence =
    step.confidence === undefined ? undefined : await renderKnown(scopeOf(planner, request, walk), step.confidence);
  const { workflow } = request;
  const gate = gateFor({ decision, action, workflow, index, confidence });
  return gate.kind === 'closed' ? { asks: gate.asks, ...gate.requirement } : null;
}

/**
 * Where the workflow asks once for each phase: the step that asks for this one too. What it will write must be known by
 * then; otherwise people are asked about it separately.
 */
function coveringPhase(
  { workflow }: PlanRequest,
  { phases, context }: Walk,
  { step }: CalledStep,
  gate: PlannedGate,
): string | null {
  if (workflow.validation?.mode !== 'per_phase') return null;
  const asked = phases.get(step.phase);
  if (asked && unknownNeeds(step, (id) => asked.known.has(id)).length === 0) {
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

/** The step as it would be once people have agreed. */
function passed({ step: { id, tool }, index }: CalledStep, governed: Governed): Step {
  const facts = {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id,
    tool,
    leaseVersion: 1,
    attempt: 1,
    updatedAt: '',
  } as const;
  return { ...facts, governed, status: 'succeeded', output: null, completedAt: '' };
}
