import { promised } from '../outbox/outbox.ts';
import type { RunDraft, StepWrite } from '../run/commit.ts';
import { later } from '../run/lease.ts';
import type { Step } from '../run/step.ts';
import type { StepFacts, Steps } from '../worker/plan-endings.ts';
import type { Plan, Worker } from '../worker/worker.ts';
import { APPROVAL_EXPIRES_AFTER_MS, APPROVAL_SCHEMA_VERSION, type Approval } from './approval.ts';

/** Step Functions keeps the time; if it did not, the sweeper looks this long after the approval should have expired. */
const RECONCILE_AFTER_MS = 60_000;

/** The run stops at its gate: step and run wait, the approval is requested, and its state machine promised. */
export function planGate(
  worker: Worker,
  draft: RunDraft,
  steps: Steps,
  facts: StepFacts,
  expected: StepWrite['expectedLeaseVersion'],
): Plan {
  const { tenant, runId } = draft.run;
  const approval: Approval = {
    schemaVersion: APPROVAL_SCHEMA_VERSION,
    approvalId: worker.ids.next('approval'),
    tenant,
    runId,
    stepIndex: facts.index,
    stepId: facts.id,
    status: 'requested',
    requestedAt: draft.at,
    expiresAt: later(draft.at, APPROVAL_EXPIRES_AFTER_MS),
  };
  const waiting: Step = { ...facts, status: 'waiting_approval', approvalId: approval.approvalId };
  const start = promised({ kind: 'start_approval', tenant, runId, approvalId: approval.approvalId }, draft.at);
  draft
    .writeStep(waiting, expected)
    .writeApproval(approval, 'new')
    .record({
      type: 'approval.requested',
      step: facts.id,
      approvalId: approval.approvalId,
      expiresAt: approval.expiresAt,
    })
    .move('waiting_approval', { initiator: 'approval', actor: 'worker' })
    .note({ dueAt: later(approval.expiresAt, RECONCILE_AFTER_MS) })
    .promise(start);
  return { draft, steps: new Map(steps).set(facts.index, waiting), promises: [start] };
}
