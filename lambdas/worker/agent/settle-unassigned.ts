import { recordedError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import { factsOf } from '../../run/step.ts';
import { fail, settleReceipt } from '../../run-changes/step-endings.ts';
import type { StepOutcome } from '../5-executor.ts';
import type { ClaimedStep } from '../worker.ts';

type Unassigned = Extract<StepOutcome, { kind: 'unassigned' }>;

/** Source 001, 7.1. After the last of these the step fails. */
const ASSIGNED_AGAIN_AFTER_MS = [5_000, 15_000, 45_000];

/**
 * No agent ran the command under this lease, so nothing has happened: the step is assigned again, which is not an attempt
 * at its write. It fails if no agent ran it in four assignments, or if an agent refused it for a reason that another
 * attempt does not change.
 */
export function settleUnassigned(draft: RunDraft, { step, receipt }: ClaimedStep, outcome: Unassigned): void {
  const { because, reason, agentId, assignmentId, failsWith } = outcome;
  const { count = 0, agents = [] } = step.unassigned ?? {};
  const unassigned = { count: count + 1, agents: agentId === undefined ? agents : [...new Set([...agents, agentId])] };
  const waitMs = failsWith === undefined ? ASSIGNED_AGAIN_AFTER_MS[count] : undefined;
  const error = recordedError(
    failsWith ?? 'ASSIGNMENT_FAILED',
    waitMs === undefined && failsWith === undefined
      ? `no agent ran the command in ${count + 1} assignments: ${reason}`
      : reason,
  );
  settleReceipt(draft, { ...receipt, outcome: 'failed', settledAt: draft.at, error, neverSent: true });
  draft.record({
    type: 'step.unassigned',
    ...{ step: step.id, index: step.index, leaseVersion: step.leaseVersion, because, reason },
    ...(agentId !== undefined && { agent: agentId }),
    ...(assignmentId !== undefined && { assignment: assignmentId }),
  });
  if (waitMs === undefined) {
    fail(draft, { ...step, unassigned }, error, step);
    return;
  }
  const { input, receiptKey } = step;
  const retryAt = later(draft.at, waitMs);
  draft
    .put({
      ...factsOf({ ...step, attempt: step.attempt - 1, unassigned }, draft.at),
      ...{ input, receiptKey, status: 'failed_retryable', retryAt, error },
    })
    .record({ type: 'step.retry_scheduled', step: step.id, index: step.index, retryAt, error });
}
