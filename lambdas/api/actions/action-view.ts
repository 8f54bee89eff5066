import type { ErrorCode } from '../../run/errors.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import type { LoadedRun } from '../../run/run-store.ts';
import type { Step } from '../../run/step.ts';
import type { Action } from '../contract/runs/actions.ts';
import { withoutLargeValues } from '../response-size.ts';

/** Policy or people have refused the call. */
const DENIED: readonly ErrorCode[] = ['POLICY_DENIED', 'APPROVAL_REJECTED', 'APPROVAL_EXPIRED', 'COMMAND_NOT_ALLOWED'];

/** An action as its proposer sees it. */
export function actionView({ run, steps }: Pick<LoadedRun, 'run' | 'steps'>): Action {
  const step = steps.find(({ index }) => index === 0);
  const error = (isTerminal(run) && run.error) || null;
  const output = step?.status === 'succeeded' || step?.status === 'rolled_back' ? step.output : null;
  return {
    actionId: run.runId,
    status: statusOf(run, step),
    tool: run.request?.action?.tool ?? '',
    target: step?.governed?.request.action.target ?? null,
    session: run.request?.action?.of ?? null,
    requestedBy: run.request?.actor ?? '',
    createdAt: run.createdAt,
    completedAt: isTerminal(run) ? run.completedAt : null,
    result: withoutLargeValues({ output: output ?? null }).output,
    reasons: [...(step?.governed?.decision.reasons ?? [])],
    approval:
      step?.status === 'waiting_approval'
        ? { approvalId: step.approvalId, expiresAt: step.expiresAt, path: `/approvals/${step.approvalId}` }
        : null,
    error,
  };
}

function statusOf(run: Run, step: Step | undefined): Action['status'] {
  if (!isTerminal(run)) return step?.status === 'waiting_approval' ? 'waiting_approval' : 'pending';
  switch (run.status) {
    case 'succeeded':
    case 'needs_human':
    case 'canceled':
      return run.status;
    default:
      return run.error && DENIED.includes(run.error.code) ? 'denied' : 'failed';
  }
}
