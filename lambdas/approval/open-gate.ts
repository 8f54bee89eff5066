import { promised } from '../outbox/outbox.ts';
import { later } from '../run/lease.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import type { Worker } from '../worker/worker.ts';
import { APPROVAL_EXPIRES_AFTER_MS, APPROVAL_SCHEMA_VERSION, type Approval } from './approval.ts';

/** The step stops at its gate: the approval is requested, and the state machine that holds it promised. */
export function openGate(worker: Pick<Worker, 'ids'>, draft: RunDraft, step: StepFacts): void {
  const { tenant, runId } = draft.run;
  const approval: Approval = {
    schemaVersion: APPROVAL_SCHEMA_VERSION,
    approvalId: worker.ids.next('approval'),
    tenant,
    runId,
    stepIndex: step.index,
    stepId: step.id,
    status: 'requested',
    requestedAt: draft.at,
    expiresAt: later(draft.at, APPROVAL_EXPIRES_AFTER_MS),
  };
  const { approvalId, expiresAt } = approval;
  draft
    .put({ ...step, status: 'waiting_approval', approvalId, expiresAt })
    .putApproval(approval, 'new')
    .record({ type: 'approval.requested', step: step.id, approvalId, expiresAt })
    .promise(promised({ kind: 'start_approval', tenant, runId, approvalId }, draft.at));
}
