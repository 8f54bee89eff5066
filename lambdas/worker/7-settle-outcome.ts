import { findOperation } from '../connectors/registry.ts';
import { type RecordedError, recordedError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import { type IntentReceipt, together, type UnknownReceipt } from '../run/receipt.ts';
import { attemptsOf } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { ASKS_AGAIN_AFTER_MS } from '../run/settings/flags.ts';
import { factsOf, type Step } from '../run/step.ts';
import { writerOf } from '../run-changes/conclusion/compensation.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, PROBES_MAX, scheduleRetry, settleReceipt, succeed } from '../run-changes/step-endings.ts';
import { receiptOf } from '../run-changes/step-receipt.ts';
import type { StepOutcome } from './5-executor.ts';
import type { Reporter } from './6-report-outcome.ts';
import { settleUnassigned } from './agent/settle-unassigned.ts';
import type { ClaimedStep } from './worker.ts';

type Failure = Exclude<StepOutcome, { kind: 'done' | 'unassigned' }>;

/** Settles a performed step in the draft: the outcome of its receipt and of the step itself. */
export async function settleOutcome(
  reporter: Reporter,
  state: RunState,
  draft: RunDraft,
  claimed: ClaimedStep,
  outcome: StepOutcome,
): Promise<void> {
  const { step, receipt } = claimed;
  recordCommand(draft, claimed, outcome);
  if (outcome.kind === 'done') {
    const { result } = outcome;
    const cost = together(receipt.spentBefore, result.cost);
    settleReceipt(draft, { ...receipt, ...result, ...(cost && { cost }), outcome: 'succeeded', settledAt: draft.at });
    const { awaitEnd } = reporter.executorFor(step.tool);
    if (awaitEnd) awaitEnd(reporter, state, draft, claimed, result);
    else if (result.incomplete === undefined) succeed(draft, step, { output: result.output, receiptKey: receipt.key });
    else fail(draft, step, recordedError('TARGET_REFUSED', result.incomplete), { ...step, wrote: true });
  } else if (outcome.kind === 'unassigned') {
    settleUnassigned(draft, claimed, outcome);
  } else {
    settleFailure(reporter, state, draft, claimed, asOfPlan(state, claimed, outcome));
  }
  if (step.undoes !== undefined) await settleUndoneReceipt(reporter, draft, step.undoes, receipt.key);
}

/** What the agent reported, as a part of the chain: it proves the receipt. */
function recordCommand(draft: RunDraft, { step, receipt }: ClaimedStep, outcome: StepOutcome): void {
  if (outcome.kind === 'unassigned') return;
  const command = outcome.kind === 'done' ? outcome.result.command : outcome.command;
  if (!command) return;
  const { agentId: agent, assignmentId: assignment, status, exitCode, durationMs, output, violations } = command;
  draft.record({
    type: 'step.command_ended',
    ...{ step: step.id, index: step.index, agent, assignment, leaseVersion: step.leaseVersion },
    ...{ receiptKey: receipt.key, status, exitCode, durationMs, violations },
    ...{ outputSha256: output.sha256, outputBytes: output.bytes },
    credentials: command.credentialsUsed.map(({ id }) => id),
  });
}

/**
 * The receipt of an undone write becomes `reversed`, which frees its key: the same write may be made again. If the write
 * was certainly not undone, other runs may reuse it again; if the outcome of the undo is unknown, they may not.
 */
async function settleUndoneReceipt(reporter: Reporter, draft: RunDraft, index: number, undoKey: string): Promise<void> {
  const undone = draft.steps.get(index);
  const receipt = undone && (await receiptOf(reporter, draft, undone));
  if (!undone || receipt?.runId !== writerOf(draft.run)) return;
  const undo = draft.receipt(undoKey);
  if (receipt.outcome === 'unknown' && undo?.outcome === 'succeeded')
    settleLostCommand(draft, undone, receipt, undoKey);
  if (receipt.outcome !== 'succeeded') return;
  const { undoBegunAt: _begun, ...made } = receipt;
  if (undo?.outcome === 'failed') draft.putReceipt(made, 'ours');
  if (undo?.outcome !== 'succeeded' || undo.incomplete !== undefined) return;
  const { key } = receipt;
  draft.putReceipt({ ...made, outcome: 'reversed', reversedAt: draft.at, reversedBy: undoKey }, 'ours').record({
    type: 'write.reversed',
    step: undone.id,
    receiptKey: key,
    reversedBy: undoKey,
  });
  // The steps of another run, which has ended, do not change.
  if (undone.status !== 'succeeded' || draft.run.rollbackOf) return;
  const { output, completedAt, durationMs } = undone;
  draft.put({ ...factsOf(undone, draft.at), status: 'rolled_back', output, receiptKey: key, completedAt, durationMs });
}

/** Nobody knows whether the lost command was completed, but its rollback was: nothing of it is in place. */
function settleLostCommand(draft: RunDraft, { id }: Step, receipt: UnknownReceipt, reversedBy: string): void {
  const { reversal, ...facts } = receipt;
  if (!reversal) return;
  const undone = { output: undefined, reversal, response: {}, reversedAt: draft.at, reversedBy };
  draft
    .putReceipt({ ...facts, ...undone, outcome: 'reversed' }, 'ours')
    .record({ type: 'write.reversed', step: id, receiptKey: receipt.key, reversedBy });
}

/** In a run that applies a plan, a changed target means that the plan no longer applies. */
function asOfPlan({ trigger }: RunState, { step }: ClaimedStep, outcome: Failure): Failure {
  if (!trigger.plan || outcome.error.code !== 'DRIFTED' || step.undoes !== undefined) return outcome;
  return { ...outcome, error: recordedError('PLAN_DRIFTED', outcome.error.message) };
}

/** Retries while attempts remain; an unknown outcome only after its quarantine. */
function settleFailure(
  reporter: Reporter,
  state: RunState,
  draft: RunDraft,
  { step, receipt }: ClaimedStep,
  outcome: Failure,
): void {
  const unknown = outcome.kind === 'unknown';
  settleReceipt(draft, failedReceipt(draft, receipt, outcome));
  const { heldBy: flag } = outcome;
  if (flag !== undefined) {
    // Nothing was sent, so this was not an attempt at the write.
    const notBefore = later(draft.at, ASKS_AGAIN_AFTER_MS);
    scheduleRetry(reporter, draft, { ...step, attempt: step.attempt - 1 }, outcome.error, { notBefore, flag });
    return;
  }
  const definition = state.workflow.steps[step.index];
  const { quarantineMs } = reporter.executorFor(step.tool).lease;
  const attemptsMax = attemptsOf(findOperation(step.tool), definition, step.input) + (unknown ? PROBES_MAX : 0);
  const mayRetry = outcome.retryable && step.attempt < attemptsMax && !(unknown && receipt.effect === 'opaque');
  if (!mayRetry) {
    fail(draft, step, finalError(step.attempt, outcome), { ...step, ...(isUndoable(outcome) && { mayHaveWritten }) });
    return;
  }
  const sent = outcome.kind === 'refused' && !outcome.neverSent;
  // The next attempt of a command begins with new assignments.
  const { unassigned: _before, ...again } = step;
  scheduleRetry(reporter, draft, { ...again, ...(sent && { sent }) }, outcome.error, {
    ...(outcome.kind === 'refused' && { retryAfterMs: outcome.retryAfterMs }),
    delaysMs: definition?.retry?.backoffSeconds?.map((seconds) => seconds * 1000),
    ...(unknown && { notBefore: later(receipt.intentAt, quarantineMs) }),
  });
}

const mayHaveWritten = true as const;
const isUndoable = ({ reversal }: Failure): boolean => reversal !== undefined && !('irreversible' in reversal);

function failedReceipt(draft: RunDraft, receipt: IntentReceipt, outcome: Failure) {
  const { before: _before, ...facts } = receipt;
  const { error, command, reversal } = outcome;
  const settled = { ...facts, settledAt: draft.at, error, ...(command && { command }), ...(reversal && { reversal }) };
  if (outcome.kind === 'unknown') {
    return { ...settled, outcome: 'unknown' as const, ...(outcome.before && { before: outcome.before }) };
  }
  const cost = together(receipt.spentBefore, outcome.cost);
  const { neverSent } = outcome;
  return { ...settled, outcome: 'failed' as const, ...(cost && { cost }), ...(neverSent && { neverSent }) };
}

/** After the last attempt an unknown outcome stays unknown, so that the run gets `needs_human`. */
function finalError(attempt: number, { kind, error, retryable }: Failure): RecordedError {
  if (kind === 'unknown' || !retryable || error.code === 'COMMAND_FAILED') return error;
  return recordedError('RETRIES_EXHAUSTED', `${error.message}; gave up after ${attempt} attempts`);
}
