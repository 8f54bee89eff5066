import { connectorOf, type Operation, type Proposal, RISKS, type Risk } from '../connectors/connector.ts';
import type { Run } from '../run/run.ts';
import type { Workflow, WorkflowStep } from '../workflow/workflow.ts';
import type { Environment, PolicyRequest, ProposedAction } from './policy.ts';

interface Proposed {
  operation: Operation;
  proposal: Proposal;
  instance: string;
  /** The step as the workflow has it; an undo has none. */
  definition?: Pick<WorkflowStep, 'risk' | 'blastRadius'>;
  workflow: Pick<Workflow, 'blastRadius'>;
  environment: Environment;
  makers: string[];
}

/** A step's call as policy and people are to judge it. The only place where it is put together. */
export function proposedAction(proposed: Proposed): ProposedAction {
  const { operation, proposal, instance, definition, workflow, environment, makers } = proposed;
  const undo = definition === undefined;
  return {
    tool: operation.tool,
    connector: connectorOf(operation.tool),
    instance,
    target: proposal.target,
    fields: proposal.fields,
    effect: operation.effect,
    risk: higher(operation.risk, definition?.risk),
    blastRadius: definition?.blastRadius ?? workflow.blastRadius,
    environment,
    // What an undo takes away is what we put there: nothing of anyone's is lost by it.
    destructive: operation.destructive === true && !undo,
    reversible: operation.reversible,
    undo,
    makers,
  };
}

export function policyRequest(
  run: Pick<Run, 'tenant' | 'automation' | 'workspace' | 'workflow' | 'trigger' | 'writes'>,
  action: ProposedAction,
): PolicyRequest {
  const { tenant, automation, workspace, workflow, trigger, writes } = run;
  return { tenant, automation, workspace, workflow, source: trigger.source, writesBefore: writes, action };
}

export const higher = (a: Risk, b: Risk = 'low'): Risk => (RISKS.indexOf(a) >= RISKS.indexOf(b) ? a : b);
