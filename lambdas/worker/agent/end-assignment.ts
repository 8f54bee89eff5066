import type { AssignmentStatus } from '../../agents/assignment.ts';
import { reversalOfCommand } from '../../connectors/agent/command.ts';
import { findOperation } from '../../connectors/registry.ts';
import { lostOutputEntry } from '../../outbox/outbox.ts';
import { recordedError } from '../../run/errors.ts';
import { hasExpired } from '../../run/lease.ts';
import type { Reversal } from '../../run/receipt.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { RunningStep } from '../../run/step.ts';
import type { RunState } from '../../run-changes/run-changer.ts';
import { ownReceipt } from '../../run-changes/step-receipt.ts';
import type { StepOutcome } from '../5-executor.ts';
import { settleOutcome } from '../7-settle-outcome.ts';
import { watchLease } from '../watch-lease.ts';
import type { Worker } from '../worker.ts';

/**
 * True if the agent has renewed its lease since the state was read. A renewal changes only the row of the step, so that a
 * slow worker would not notice it, and would declare an agent lost that runs the command.
 */
export async function isRenewed(worker: Worker, draft: RunDraft, step: RunningStep): Promise<boolean> {
  const { tenant, runId } = draft.run;
  const now = (await worker.runs.load(tenant, runId))?.steps.find(({ index }) => index === step.index);
  if (now?.status !== 'running' || now.leaseVersion !== step.leaseVersion || hasExpired(now.lease, draft.at))
    return false;
  await watchLease(worker, draft.run, now);
  return true;
}

/**
 * The lease of a step that an agent performs has ended. If the agent has not acknowledged it, it has not run the command
 * and no longer may: the assignment is withdrawn. Otherwise the agent is lost, and nobody knows what the command did.
 */
export async function endAssignment(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: RunningStep,
): Promise<boolean> {
  const receipt = await ownReceipt(worker, draft, step);
  if (receipt?.outcome !== 'intent') return false;
  const { tenant, runId } = draft.run;
  const { index: stepIndex, leaseVersion, assigned } = step;
  const assignment = await worker.agents.assignment(tenant, { runId, stepIndex, leaseVersion });
  const outcome = assigned
    ? lostOutcome(step, `agent ${assigned.agentName} stopped renewing its lease; ${HOW_FAR_IS_UNKNOWN}`)
    : notAcknowledged(assignment);
  const status: AssignmentStatus = assigned ? 'lost' : 'withdrawn';
  if (assignment) {
    const reason = outcome.kind === 'unassigned' ? outcome.reason : outcome.error.message;
    draft.changeAssignment(assignment, { status, endedAt: draft.at, reason });
  }
  // Nobody reports a result, with which the output would be stored.
  if (assigned) draft.enqueue(lostOutputEntry({ tenant, runId, stepIndex, leaseVersion }, draft.at));
  await settleOutcome(worker, state, draft, { step, receipt }, outcome);
  return true;
}

export const HOW_FAR_IS_UNKNOWN =
  'it is unknown which parts of the command were executed (RUNBOOK, "An agent is lost")';

/** Nobody knows what the command did. */
export const lostOutcome = (step: RunningStep, message: string): Extract<StepOutcome, { kind: 'unknown' }> => ({
  kind: 'unknown',
  error: recordedError('AGENT_LOST', message),
  retryable: false,
  reversal: reversalOf(step),
});

/** How to undo what the command of a step may have changed. */
export function reversalOf({ tool, input, undoes }: Pick<RunningStep, 'tool' | 'input' | 'undoes'>): Reversal {
  if (undoes !== undefined) return { irreversible: 'it undoes another command' };
  return reversalOfCommand(findOperation(tool)?.parse(input));
}

function notAcknowledged(
  assignment: { agentId: string; agentName: string; assignmentId: string } | undefined,
): Extract<StepOutcome, { kind: 'unassigned' }> {
  if (!assignment) {
    return { kind: 'unassigned', because: 'no_agent', reason: 'the worker was lost before it offered the assignment' };
  }
  const { agentId, agentName, assignmentId } = assignment;
  const reason = `agent ${agentName} did not acknowledge the assignment in time`;
  return { kind: 'unassigned', because: 'not_acknowledged', reason, agentId, assignmentId };
}
