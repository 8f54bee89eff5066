import type { Operation, Proposal } from '../connectors/connector.ts';
import { makersOf } from '../people/people.ts';
import type { PolicyDecision, ProposedAction } from '../policy/policy.ts';
import { proposedAction } from '../policy/proposed-action.ts';
import type { EventOf } from '../run/events/events.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts, Steps } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { Worker } from '../worker/worker.ts';
import { derivedTargets } from '../workflow/model-flow.ts';

interface Called {
  step: StepFacts;
  operation: Operation;
  proposal: Proposal;
  instance: string;
}

/** A step's call as policy and people are to judge it, with everybody whose input is in it. */
export async function actionOf(
  worker: Pick<Worker, 'definitions' | 'environment'>,
  { workflow, trigger }: RunState,
  { run, steps }: RunDraft,
  { step, operation, proposal, instance }: Called,
): Promise<ProposedAction> {
  const people = await worker.definitions.people(run.tenant);
  const { enrichment } = run;
  // A step's values are fixed when it is first proposed: what people gave the run later is not in them.
  const duringRun = step.governed ? [] : run.makers;
  const makers = makersOf(people, { trigger, enrichment, workflow, duringRun });
  return proposedAction({
    operation,
    proposal,
    instance,
    definition: workflow.steps[step.undoes ?? step.index],
    undo: step.undoes !== undefined,
    workflow,
    environment: worker.environment,
    derived: step.undoes === undefined ? derivedTargets(workflow, step.index) : [],
    makers: [...new Set([...makers, ...inheritedMakers(step, steps)])],
  });
}

/** An edited write stays its editor's however often it is asked about anew; and undoing a write is also its makers' work. */
function inheritedMakers({ governed, undoes, retriedBy = [] }: StepFacts, steps: Steps): string[] {
  const undone = undoes === undefined ? undefined : steps.get(undoes);
  const earlier = [governed, undone?.governed].flatMap((each) => each?.request.action.makers ?? []);
  return [...earlier, ...retriedBy];
}

export function decided(
  { id, index }: StepFacts,
  { tool, target, derived }: ProposedAction,
  decision: PolicyDecision,
  hash: string,
): EventOf<'policy.decided'> {
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
    ...(verdict === 'needs_approval' && decision.requirement),
    ...(verdict === 'deny' && decision.message !== undefined && { message: decision.message }),
  };
}
