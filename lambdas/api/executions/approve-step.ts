import { Problem } from '../../entry/http.ts';
import type { Approval } from '../../run/approval.ts';
import { CountersignError } from '../../run/errors.ts';
import type { RunStore } from '../../run/run-store.ts';
import { STEP_STATE } from '../runs/execution-vocabulary.ts';
import { approvalTask } from './execution-view.ts';

type Runs = Pick<RunStore, 'load' | 'approval'>;
interface Wanted {
  tenant: string;
  runId: string;
  step_number: number;
}

/** The approval that a step waits for or, for a repeated request, that it waited for. */
export async function approvalOfStep(runs: Runs, { tenant, runId, step_number }: Wanted): Promise<Approval> {
  const loaded = await runs.load(tenant, runId);
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no execution ${runId}`);
  const step = loaded.steps.find(({ index }) => index === step_number - 1);
  const approvalId = step?.status === 'waiting_approval' ? step.approvalId : step?.governed?.approvalId;
  const approval = approvalId === undefined ? undefined : await runs.approval(tenant, runId, approvalId);
  if (approval) return approval;
  const now = step ? STEP_STATE[step.status] : 'not reached yet';
  throw new Problem(409, 'APPROVAL_CLOSED', `step ${step_number} does not wait for an approval: it is ${now}`);
}

/** Refuses a decision that does not name the write as it is now, and shows it. */
export function assertSeen(approval: Approval, seen: string | undefined): void {
  if (seen !== approval.actionHash) throw staleApproval(approval, seen);
}

/** The write was changed between our check and the decision: says the same. */
export async function orStale<T>(runs: Runs, wanted: Wanted, deciding: () => Promise<T>): Promise<T> {
  try {
    return await deciding();
  } catch (error) {
    if (!(error instanceof CountersignError) || error.code !== 'APPROVAL_STALE') throw error;
    throw staleApproval(await approvalOfStep(runs, wanted), '');
  }
}

function staleApproval(approval: Approval, seen: string | undefined): Problem {
  const detail =
    seen === undefined
      ? 'action_hash is required: it identifies the write that you decide on. Check the write in `current`, then send its action_hash'
      : 'action_hash: the write has changed. Check the new write in `current`, then send its action_hash';
  return new Problem(409, 'APPROVAL_STALE', detail, { current: approvalTask(approval) });
}
