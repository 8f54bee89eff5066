import { connectorOf, type Operation, type Proposal } from '../connectors/connector.ts';
import { makersOf, type Person } from '../people/people.ts';
import { type ActionDigests, actionDigests, actionHash, hashOfDigests } from '../policy/action-hash.ts';
import type { Environment, Policy, PolicyDecision, PolicyRequest, ProposedAction } from '../policy/policy.ts';
import { type BeforeValues, beforeValues } from '../policy/policy-facts.ts';
import { type Circumstances, policyRequest, proposedAction } from '../policy/proposed-action.ts';
import { CountersignError } from '../run/errors.ts';
import type { EventOf } from '../run/events/events.ts';
import type { DecidedAction } from '../run/events/policy-events.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Run, Trigger } from '../run/run.ts';
import type { StepFacts, Steps } from '../run/step.ts';
import { derivedTargets } from '../workflow/model-flow.ts';
import { stepsUsedBy } from '../workflow/used-outputs.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import { containsUnknown, KNOWN_AFTER_APPLY, shownValue } from './known-after-apply.ts';

/**
 * THE PROPOSAL PATH. Each call to a target goes through it before anything is sent:
 *
 *   input -> proposal (target, fields, key) -> action -> policy decision -> action hash -> gate (policy/gates.ts)
 *
 * The worker uses it to claim a step, an approval to show the rest of its phase and to edit a write, and the planner to
 * plan a run. Only the planner has inputs with values that are known after apply.
 */
export interface Call {
  operation: Operation;
  input: unknown;
  /** The instance of the target system, from the tenant's connection. */
  instance: string;
}

export interface ProposedCall extends Call {
  proposal: Proposal;
  /** The parsed input; absent if too little of it is known to read the target. */
  parsed?: { input: unknown };
}

export interface DecidedCall extends ProposedCall {
  action: ProposedAction;
  request: PolicyRequest;
  decision: PolicyDecision;
  actionHash: string;
  /** What the hash is made of, in a run that has a salt. */
  digests?: ActionDigests;
}

export function proposeCall(call: Call): ProposedCall {
  const { operation, input, instance } = call;
  const isKnown = !containsUnknown(input);
  const shown = isKnown ? input : shownValue(input);
  try {
    const parsed = operation.parse(shown);
    const proposal = operation.propose(parsed, instance);
    const readable = isKnown || !proposal.target.includes(KNOWN_AFTER_APPLY.shown);
    return { ...call, proposal, ...(readable && { parsed: { input: parsed } }) };
  } catch (error) {
    if (isKnown || !(error instanceof CountersignError)) throw error;
    const target = `${connectorOf(operation.tool)}:${KNOWN_AFTER_APPLY.shown}`;
    return { ...call, proposal: { target, fields: shown as Record<string, unknown>, key: '' } };
  }
}

interface DecidingPorts {
  policy: Policy;
  environment: Environment;
}

/** The step that makes the call. */
interface CallingStep {
  workflow: PublishedWorkflow;
  index: number;
  /** The index of the step that this one undoes. */
  undoes?: number;
  makers: string[];
}

interface DecisionContext extends Omit<Circumstances, 'before'> {
  /** Reads the policies again instead of using the cached ones. */
  fresh?: boolean;
  /** The current values of what the write changes: as read, or how to read them if policy needs them. */
  before?: TouchedState | (() => Promise<TouchedState | undefined>);
}

/** Policy decides on a proposed call. */
export async function decideOnCall(
  { policy, environment }: DecidingPorts,
  run: Parameters<typeof policyRequest>[0] & Pick<Run, 'salt'>,
  proposed: ProposedCall,
  { workflow, index, undoes, makers }: CallingStep,
  { at, trigger, before, fresh = false }: DecisionContext,
): Promise<DecidedCall> {
  const { operation, input, instance, proposal } = proposed;
  const action = proposedAction({
    operation,
    proposal,
    instance,
    definition: workflow.steps[undoes ?? index],
    undo: undoes !== undefined,
    workflow,
    environment,
    derived: undoes === undefined ? derivedTargets(workflow, index) : [],
    makers,
  });
  const read = typeof before === 'function' ? before : undefined;
  const known = typeof before === 'object' ? beforeValues(before) : undefined;
  const request = policyRequest(run, action, { at, trigger, before: known });
  let found: BeforeValues | undefined;
  const readBefore = async () => {
    const state = await read?.();
    found = state && beforeValues(state);
    return found;
  };
  const decision = await policy.decide(request, { fresh, ...(read && { readBefore }) });
  const digests = run.salt === undefined ? undefined : actionDigests(action, input, run.salt);
  const { policyHash } = decision;
  return {
    ...proposed,
    action,
    request: found ? { ...request, before: found } : request,
    decision,
    actionHash: digests
      ? hashOfDigests(digests, policyHash, run.workflow)
      : actionHash(action, input, policyHash, run.workflow),
    ...(digests && { digests }),
  };
}

/** Everyone whose input is in the call of a step. None of them may approve it. */
export function makersOfStep(
  people: readonly Person[],
  { trigger, workflow }: { trigger: Trigger; workflow: PublishedWorkflow },
  { run, steps }: { run: Run; steps: Steps },
  { governed, undoes, index, retriedBy = [] }: StepFacts,
): string[] {
  // The values of a step are fixed when it is first proposed, so people who changed the run later are not in them.
  const duringRun = governed ? [] : run.makers;
  const makers = makersOf(people, { trigger, enrichment: run.enrichment, workflow, duringRun });
  // The makers of an edited write stay its makers, and the makers of a write are makers of its undo.
  const undone = undoes === undefined ? undefined : steps.get(undoes);
  const earlier = [governed, undone?.governed].flatMap((each) => each?.request.action.makers ?? []);
  const all = new Set([...makers, ...earlier, ...retriedBy]);
  if (undoes === undefined) for (const maker of makersOfOutputs(workflow, steps, index, all)) all.add(maker);
  return [...all];
}

/** The makers of a write are makers of the writes that use its output: somebody may have edited it. */
function makersOfOutputs(workflow: PublishedWorkflow, steps: Steps, index: number, known: Set<string>): string[] {
  const others = [...steps].flatMap(([other, { governed }]) => {
    const makers = governed?.request.action.makers.filter((maker) => !known.has(maker)) ?? [];
    return makers.length > 0 ? [{ other, makers }] : [];
  });
  // Most runs have none, and expressions need not be read.
  if (others.length === 0) return [];
  const used = stepsUsedBy(workflow, index);
  return others.flatMap(({ other, makers }) => (used.has(other) ? makers : []));
}

export function policyDecided({ id, index }: StepFacts, decided: DecidedCall): EventOf<'policy.decided'> {
  const { action, decision, actionHash: hash, digests } = decided;
  const { tool, target, derived } = action;
  const { verdict, policyHash, policies, reasons } = decision;
  return {
    type: 'policy.decided',
    step: id,
    index,
    tool,
    target,
    verdict,
    policyHash,
    policies,
    reasons,
    actionHash: hash,
    ...(derived && { derived }),
    ...(digests && { action: factsIn(digests), fields: digests.fields, inputDigest: digests.input }),
    ...(verdict === 'needs_approval' && decision.requirement),
    ...(verdict === 'deny' && decision.message !== undefined && { message: decision.message }),
  };
}

/** The facts of the action that the event does not have under its own fields. */
function factsIn({ facts }: ActionDigests): DecidedAction {
  const { connector, instance, effect, risk, blastRadius, environment, destructive, reversible, undo } = facts;
  return { connector, instance, effect, risk, blastRadius, environment, destructive, reversible, undo };
}
