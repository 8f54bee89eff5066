import { demandsAtLeast } from '../policy/approval-requirement.ts';
import type { ApprovalRequirement } from '../policy/policy.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import { approvedHashOf } from '../run/approval-phase.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { Worker } from '../worker/worker.ts';
import { stillMissing } from './votes.ts';

interface Wanted {
  step: StepFacts;
  hash: string;
  requirement: ApprovalRequirement;
  makers: string[];
  /** An approval that this step was stopped for before: it does not count again. */
  askedBefore: string | undefined;
}

/** The approval of another write of the phase that covers this very write too, if it holds or can still be given. */
export async function phaseApproval(
  worker: Worker,
  { workflow }: RunState,
  draft: RunDraft,
  { step, hash, requirement, makers, askedBefore }: Wanted,
): Promise<Approval | undefined> {
  if (workflow.validation?.mode !== 'per_phase' || step.undoes !== undefined) return undefined;
  const { tenant, runId } = draft.run;
  const asked = [...draft.steps.values()].flatMap((other) =>
    other.index !== step.index && workflow.steps[other.index]?.phase === workflow.steps[step.index]?.phase
      ? (other.governed?.approvalId ?? [])
      : [],
  );
  for (const approvalId of new Set(asked)) {
    if (approvalId === askedBefore) continue;
    const approval = draft.approval(approvalId) ?? (await worker.runs.approval(tenant, runId, approvalId));
    if (!approval || approval.expiresAt <= draft.at || approvedHashOf(approval, step.index) !== hash) continue;
    if (!demandsAtLeast(approval.requirement, requirement)) continue;
    if (isOpen(approval)) return approval;
    const people = await worker.definitions.people(tenant, { fresh: true });
    const counted = { ...approval, makers: [...approval.makers, ...makers] };
    if (approval.status === 'approved' && stillMissing(counted, people) === 0) return approval;
  }
  return undefined;
}
