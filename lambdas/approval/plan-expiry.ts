import { RunDraft } from '../run/commit.ts';
import { recordedError } from '../run/errors.ts';
import type { RunStore } from '../run/run-store.ts';
import { planFailure } from '../worker/plan-endings.ts';
import type { Plan, RunState } from '../worker/worker.ts';

/** Ends a gate nobody answered in time. Silence is `expired`: neither a yes nor a human no. */
export async function planExpiry(
  runs: Pick<RunStore, 'approval'>,
  state: Pick<RunState, 'run' | 'steps'>,
  now: string,
): Promise<Plan | undefined> {
  const step = [...state.steps.values()].at(-1);
  if (step?.status !== 'waiting_approval') return undefined;
  const approval = await runs.approval(state.run.tenant, state.run.runId, step.approvalId);
  if (!approval || approval.expiresAt > now) return undefined;
  if (approval.status !== 'requested' && approval.status !== 'notified') return undefined;
  const error = recordedError('APPROVAL_EXPIRED', `nobody decided on ${step.id} before ${approval.expiresAt}`);
  const draft = new RunDraft(state.run, now)
    .writeApproval({ ...approval, status: 'expired' }, approval.status)
    .record({ type: 'approval.expired', step: step.id, approvalId: approval.approvalId });
  const { schemaVersion, index, id, tool, leaseVersion, attempt } = step;
  const facts = { schemaVersion, index, id, tool, leaseVersion, attempt, updatedAt: now };
  return planFailure(draft, new Map(state.steps), facts, error);
}
