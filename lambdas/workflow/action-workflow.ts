import type { Definitions } from '../pipeline/definitions.ts';
import { higher } from '../policy/approval-requirement.ts';
import type { ProposedCallInput, Run, Trigger } from '../run/run.ts';
import type { PublishedWorkflow, WorkflowStep } from './workflow.ts';

/** The id of the only step of an action. */
export const ACTION_STEP = 'action';

/**
 * The name under which calls run that people and programs propose outside a workflow. Policies can permit and forbid by it.
 * No file can have this name, because it contains a dot.
 */
export const DIRECT_ACTION = { name: 'countersign.action', version: 1 } as const;

const DIRECT: PublishedWorkflow = {
  name: DIRECT_ACTION.name,
  onFailure: 'fail',
  onReject: 'fail',
  blastRadius: 'low',
  approvals: {},
  onDrift: 'write',
  steps: [],
};

/**
 * The workflow that a run performs. An action is a run with one step, under the rules of the workflow whose session proposed
 * it: author, blast radius, validation mode, approvals and caps. So everything that holds for the step of a workflow
 * holds for an action, without code of its own.
 */
export async function workflowOfRun(
  definitions: Pick<Definitions, 'workflow'>,
  { tenant, workflow: { name, version } }: Pick<Run, 'tenant' | 'workflow'>,
  { action }: Pick<Trigger, 'action'>,
): Promise<PublishedWorkflow | undefined> {
  if (action && name === DIRECT_ACTION.name) return actionWorkflow(DIRECT, action);
  const published = await definitions.workflow(tenant, name, version);
  return published && action ? actionWorkflow(published, action) : published;
}

function actionWorkflow(published: PublishedWorkflow, action: ProposedCallInput): PublishedWorkflow {
  const { tool, input, sessionStep, chosen } = action;
  const { risk, blastRadius } = published.steps.find(({ id }) => id === sessionStep) ?? {};
  const step: WorkflowStep = {
    id: ACTION_STEP,
    tool,
    with: {},
    critical: true,
    phase: 'main',
    rollback: 'none',
    dedupeScope: 'tenant',
    ...((risk ?? action.risk) && { risk: higher(risk ?? 'low', action.risk) }),
    ...(blastRadius && { blastRadius }),
    action: {
      input,
      derived: chosen.map((field) => ({ field, how: 'chosen', from: sessionStep === undefined ? [] : [sessionStep] })),
    },
  };
  const { inputs: _inputs, outputs: _outputs, concurrencyKey: _key, deadlineSeconds: _deadline, ...rules } = published;
  // The run of the session has the concurrency key until it ends, and its own inputs and outputs.
  return { ...rules, onFailure: 'fail', onReject: 'fail', steps: [step] };
}
