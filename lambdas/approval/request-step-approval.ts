import type { Definitions } from '../pipeline/definitions.ts';
import type { Environment } from '../policy/policy.ts';
import { makersOfStep } from '../proposal/propose-call.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { approverIsDerived } from '../workflow/checks/check-model-flow.ts';
import { derivedTargets } from '../workflow/model-flow.ts';
import type { ApprovalInput } from '../workflow/step-kinds.ts';
import { requestApproval } from './request-approval.ts';

interface StepRequester {
  definitions: Pick<Definitions, 'people'>;
  environment: Environment;
}

/** Requests the approval of an `approval` step. */
export async function requestStepApproval(
  requester: StepRequester,
  state: RunState,
  draft: RunDraft,
  step: StepFacts,
  input: ApprovalInput,
): Promise<void> {
  const [derived] = derivedTargets(state.workflow, step.index);
  if (derived) throw new CountersignError('WORKFLOW_INVALID', approverIsDerived(derived));
  const { message, ...requirement } = input;
  const { tenant, workflow } = draft.run;
  const people = await requester.definitions.people(tenant);
  requestApproval(state, draft, {
    step,
    asks: 'step',
    actionHash: hashOf({ step: step.id, input, workflow }),
    requirement,
    grounds: { policyHash: '', policies: [], reasons: ['the workflow asks for it'] },
    makers: makersOfStep(people, state, draft, step),
    environment: requester.environment,
    ...(message !== undefined && { message }),
  });
}
