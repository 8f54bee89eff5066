import { stillMissing } from '../people/votes.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { demandsAtLeast } from '../policy/approval-requirement.ts';
import type { ApprovalRequirement } from '../policy/policy.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import { approvedHashOf } from '../run/approval-phase.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { RunStore } from '../run/run-store.ts';
import type { StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { modeIn } from '../workflow/requested-mode.ts';

interface WantedApproval {
  step: StepFacts;
  actionHash: string;
  environment: string;
  requirement: ApprovalRequirement;
  makers: string[];
  /** An approval that this step was stopped for before: it does not count again. */
  askedBefore: string | undefined;
}

/** The approval of another write of the phase that covers this write too, if it is approved or still open. */
export async function findCoveringApproval(
  { runs, definitions }: { runs: Pick<RunStore, 'approval'>; definitions: Pick<Definitions, 'people'> },
  { workflow }: RunState,
  draft: RunDraft,
  { step, environment, actionHash, requirement, makers, askedBefore }: WantedApproval,
): Promise<Approval | undefined> {
  if (modeIn(workflow, environment) !== 'per_phase' || step.undoes !== undefined) return undefined;
  const { tenant, runId } = draft.run;
  const asked = [...draft.steps.values()].flatMap((other) =>
    other.index !== step.index && workflow.steps[other.index]?.phase === workflow.steps[step.index]?.phase
      ? (other.governed?.approvalId ?? [])
      : [],
  );
  for (const approvalId of new Set(asked)) {
    if (approvalId === askedBefore) continue;
    const approval = draft.approval(approvalId) ?? (await runs.approval(tenant, runId, approvalId));
    if (!approval || approval.expiresAt <= draft.at || approvedHashOf(approval, step.index) !== actionHash) continue;
    if (!demandsAtLeast(approval.requirement, requirement)) continue;
    if (isOpen(approval)) return approval;
    const people = await definitions.people(tenant, { fresh: true });
    const counted = { ...approval, makers: [...approval.makers, ...makers] };
    if (approval.status === 'approved' && stillMissing(counted, people) === 0) return approval;
  }
  return undefined;
}
