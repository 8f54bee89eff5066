import { connectorOf, type Operation, type Proposal } from '../connectors/connector.ts';
import { REQUESTED_EVENT, type Run, type Trigger } from '../run/run.ts';
import type { DerivedTarget } from '../workflow/model-flow.ts';
import type { Workflow, WorkflowStep } from '../workflow/workflow.ts';
import { higher } from './approval-requirement.ts';
import type { Environment, PolicyRequest, ProposedAction } from './policy.ts';
import { type BeforeValues, triggerFacts } from './policy-facts.ts';

interface Proposed {
  operation: Operation;
  proposal: Proposal;
  instance: string;
  /** The step of the workflow. An undo has the risk and blast radius of the step that it undoes. */
  definition: Pick<WorkflowStep, 'risk' | 'blastRadius'> | undefined;
  undo?: boolean;
  workflow: Pick<Workflow, 'blastRadius'>;
  environment: Environment;
  derived?: DerivedTarget[];
  makers: string[];
}

/** The call of a step as policy decides on it and people see it. */
export function proposedAction(proposed: Proposed): ProposedAction {
  const {
    operation,
    proposal,
    instance,
    definition,
    undo = false,
    workflow,
    environment,
    derived = [],
    makers,
  } = proposed;
  return {
    tool: operation.tool,
    connector: connectorOf(operation.tool),
    instance,
    target: proposal.target,
    fields: proposal.fields,
    effect: operation.effect,
    risk: higher(operation.risk, definition?.risk),
    blastRadius: definition?.blastRadius ?? workflow.blastRadius,
    environment: stricterEnvironment(environment, proposal.environment),
    // An undo only removes what the run itself wrote.
    destructive: (operation.destructive === true || proposal.destructive === true) && !undo,
    reversible: operation.reversible,
    undo,
    ...(derived.length > 0 && { derived }),
    makers,
  };
}

/** A prod target is judged as in a prod stage, also from a dev stage. */
function stricterEnvironment(stage: Environment, target: Environment = stage): Environment {
  return STRICTEST_FIRST.find((each) => each === stage || each === target) ?? stage;
}
const STRICTEST_FIRST: readonly Environment[] = ['prod', 'staging', 'dev'];

/** What policy may consider in addition to the call itself. */
export interface Circumstances {
  /** The time of the decision. */
  at: string;
  trigger: Trigger;
  /** The current values of what the write changes, if they are already read. */
  before?: BeforeValues;
}

/** For a simulated event, policy sees what it sees of a run that a person starts without one. */
export function policyRequest(
  run: Pick<Run, 'tenant' | 'automation' | 'workspace' | 'workflow' | 'trigger' | 'writes'>,
  action: ProposedAction,
  { at, trigger, before }: Circumstances,
): PolicyRequest {
  const { tenant, automation, workspace, workflow, writes } = run;
  return {
    tenant,
    automation,
    workspace,
    workflow,
    source: trigger.simulated ? 'api' : run.trigger.source,
    writesBefore: writes,
    at,
    trigger: trigger.simulated ? { event: REQUESTED_EVENT } : triggerFacts(trigger),
    ...(before && { before }),
    action,
  };
}
