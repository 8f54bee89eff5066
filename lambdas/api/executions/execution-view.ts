import type { Approval } from '../../run/approval.ts';
import type { Receipt } from '../../run/receipt.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import { EXECUTION_STATE } from '../../run/statuses/execution-state.ts';
import type { ApprovalTask, Execution } from '../contract/runs/executions.ts';
import type { Step as StepView } from '../contract/runs/steps.ts';
import { APPROVAL_TASK_STATE, STEP_STATE } from '../runs/execution-vocabulary.ts';
import type { StepPage } from '../runs/run-steps.ts';

export const stepNumberOf = ({ index }: { index: number }): number => index + 1;

interface Shown {
  run: Run;
  page: StepPage & { nextStepsCursor: string | null };
  /** All steps, to find the current one. */
  steps: readonly StepView[];
  mode: Execution['validation_mode'];
  output: Execution['output'];
}

/** A run with the names of source 001. */
export function executionView({ run, page, steps, mode, output }: Shown): Execution {
  const current = isTerminal(run) ? undefined : steps.find(({ id }) => id === run.currentStep);
  return {
    session_id: run.runId,
    state: EXECUTION_STATE[run.status],
    ticket_id: run.subject ?? null,
    runbook_id: `${run.workflow.name}@${run.workflow.version}`,
    validation_mode: mode,
    environment_profile: run.request?.profile ?? null,
    current_step: current ? stepNumberOf(current) : null,
    steps: page.steps.map((step) => stepOf(step, page)),
    next_steps_cursor: page.nextStepsCursor,
    approvals: page.approvals.map(approvalTask),
    output,
    error: (isTerminal(run) && run.error) || null,
    rollback_session_id: run.rolledBackBy ?? null,
    created_at: run.createdAt,
    updated_at: run.updatedAt,
    completed_at: isTerminal(run) ? run.completedAt : null,
  };
}

function stepOf(step: StepView, { receipts, approvals }: StepPage): Execution['steps'][number] {
  const key = 'receiptKey' in step ? step.receiptKey : undefined;
  const command = receipts.find((receipt: Receipt) => receipt.key === key)?.command;
  const governed = 'governed' in step ? step.governed : undefined;
  const waiting = step.status === 'waiting_approval' ? step.approvalId : undefined;
  const assigned = 'assigned' in step ? step.assigned : undefined;
  return {
    step_number: stepNumberOf(step),
    step_id: step.id,
    tool: step.tool,
    state: STEP_STATE[step.status],
    blast_radius: governed?.request.action.blastRadius ?? null,
    sandbox_profile: command?.profile ?? assigned?.profile ?? null,
    worker_id: command?.agentId ?? assigned?.agentId ?? null,
    approval_id: waiting ?? governed?.approvalId ?? null,
    action_hash: approvals.find(({ approvalId }) => approvalId === waiting)?.actionHash ?? null,
    exit_code: command?.exitCode ?? null,
    output_sha256: command?.output.sha256 ?? null,
    credentials_used: command?.credentialsUsed.map(({ id }) => id) ?? [],
    error: 'error' in step ? (step.error ?? null) : null,
  };
}

export function approvalTask(approval: Approval): ApprovalTask {
  const { approvalId, stepIndex, status, actionHash, action, message, requirement, votes } = approval;
  return {
    approval_id: approvalId,
    step_number: stepIndex + 1,
    state: APPROVAL_TASK_STATE[status],
    action_hash: actionHash,
    ...(action && { action }),
    ...(message !== undefined && { message }),
    quorum: requirement.quorum,
    tier: requirement.tier,
    votes: votes.map(({ person, decision, reason, at }) => ({
      ...{ person, approved: decision === 'approve', notes: reason ?? null, at },
    })),
    requested_at: approval.requestedAt,
    sla_at: approval.slaAt,
    expires_at: approval.expiresAt,
  };
}
