import { expireApproval } from '../approval/expire-approval.ts';
import { findOperation } from '../connectors/registry.ts';
import { hasTime } from '../proposal/attempt-time.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import { hasExpired } from '../run/lease.ts';
import type { OpenReceipt, Receipt } from '../run/receipt.ts';
import { attemptsOf } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { isOn } from '../run/settings/flags.ts';
import {
  factsOf,
  type ReadyStep,
  type RetryableStep,
  type RunningStep,
  type Step,
  type WaitingExternalStep,
} from '../run/step.ts';
import { STOPPED_IN_FLIGHT } from '../run-changes/conclusion/close-open-steps.ts';
import { concludeRun } from '../run-changes/conclusion/conclude-run.ts';
import { awaitedEvent, TIMEOUT } from '../run-changes/conclusion/next-status.ts';
import { noteResume, overdueError } from '../run-changes/recover-run.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, PROBES_MAX, settleReceipt, succeed } from '../run-changes/step-endings.ts';
import { ownReceipt } from '../run-changes/step-receipt.ts';
import { startReadySteps, startStep } from './2-start-ready-steps.ts';
import { claimStep, isOpenWrite } from './4-claim-step.ts';
import { startRun } from './start-run.ts';
import type { ClaimedStep, Claims, Worker } from './worker.ts';

/** Claims the steps of a run that are due, then starts those that can start. Nothing if other workers hold all leases. */
export async function claimDueSteps(worker: Worker, state: RunState, draft: RunDraft): Promise<Claims | undefined> {
  const { run } = state;
  if (run.status === 'paused') return expireApprovals(worker, state, draft);
  const inFlight = [...state.steps.values()].some(
    (step) => step.status === 'running' && !hasExpired(step.lease, draft.at),
  );
  // A run does not end while a write is in flight; the lease of the write ends within a minute.
  const overdue = inFlight ? undefined : overdueError(state, draft.at);
  if (overdue) return endOverdue(worker, state, draft, overdue);
  if (run.status === 'queued') return startRun(worker, state, draft);
  noteResume(worker, state, draft);
  const claimed: ClaimedStep[] = [];
  for (const step of state.steps.values()) {
    const due = await claimIfDue(worker, state, draft, step);
    if (due) claimed.push(due);
  }
  return startReadySteps(worker, state, draft, claimed);
}

/** A paused run starts no steps, but its open approvals still expire. */
async function expireApprovals(worker: Worker, state: RunState, draft: RunDraft): Promise<Claims | undefined> {
  for (const step of state.steps.values()) {
    if (step.status === 'waiting_approval') await expireApproval(worker.runs, draft, step);
  }
  return draft.isEmpty ? undefined : { claimed: [], ...(await concludeRun(worker.runs, state, draft)) };
}

async function endOverdue(worker: Worker, state: RunState, draft: RunDraft, error: RecordedError): Promise<Claims> {
  for (const step of state.steps.values()) {
    if (step.status !== 'running') continue;
    const { endLease } = worker.executorFor(step.tool);
    if (!(await endLease?.(worker, state, draft, step))) await setAside(worker, draft, step);
  }
  return { claimed: [], ...(await concludeRun(worker.runs, state, draft, { overdue: error })) };
}

/** Takes over, retries, wakes or expires one started step, if it is due. */
async function claimIfDue(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: Step,
): Promise<ClaimedStep | undefined> {
  const now = draft.at;
  switch (step.status) {
    case 'running':
      return hasExpired(step.lease, now) ? resume(worker, state, draft, step) : undefined;
    case 'failed_retryable':
      return step.retryAt <= now ? resume(worker, state, draft, step) : undefined;
    case 'waiting_external':
      await endWaitIfDue(worker, draft, step);
      return undefined;
    case 'waiting_approval':
      await expireApproval(worker.runs, draft, step);
      return undefined;
    case 'ready':
      if ((step.notBefore ?? now) > now) return undefined;
      return hasTime(worker) && !state.run.stopRequest ? claimOrFail(worker, state, draft, step) : undefined;
    default:
      return undefined;
  }
}

async function endWaitIfDue(worker: Worker, draft: RunDraft, step: WaitingExternalStep): Promise<void> {
  const { checkWaiting } = worker.executorFor(step.tool);
  if (checkWaiting) return checkWaiting(worker, draft, step);
  const { awaits } = step;
  if (awaits.until > draft.at) return;
  if (awaits.kind === 'time') {
    succeed(draft, step, { output: { waitedUntil: awaits.until } });
    return;
  }
  if (awaits.kind !== 'signal') return;
  const error = recordedError('WAIT_TIMED_OUT', `no signal "${awaits.event}" came before ${awaits.until}`);
  fail(draft, step, error, { by: { ...TIMEOUT, externalEvent: awaitedEvent(awaits) } });
}

/** A step that was tried before. Its receipt says whether the target may have been changed. */
async function resume(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: RunningStep | RetryableStep,
): Promise<ClaimedStep | undefined> {
  if (step.status === 'running') {
    const { isRenewed, endLease } = worker.executorFor(step.tool);
    if (await isRenewed?.(worker, draft, step)) return undefined;
    if (await endLease?.(worker, state, draft, step)) return undefined;
  }
  if (state.run.stopRequest) return setAside(worker, draft, step);
  if (step.input === undefined) return startStep(worker, state, draft, step.index);
  const own = await ownReceipt(worker, draft, step);
  if (!isOpenWrite(own)) return tryAgain(worker, state, draft, step, own);
  const operation = findOperation(step.tool);
  const attemptsMax = attemptsOf(operation, state.workflow.steps[step.index], step.input) + PROBES_MAX;
  if (own.effect === 'opaque' || step.attempt >= attemptsMax) return askHuman(draft, step, own);
  // If policy denies the write, or people must approve it first, only a person can find out whether it was made.
  const claimed = await claimOrFail(worker, state, draft, step, own);
  if (claimed) return claimed;
  const waiting = waitingNow(state, draft, step);
  if (!waiting) return askHuman(draft, step, own);
  // The worker that had the lease is lost. If the run is stopped before the write is probed, its receipt must say what is known.
  if (own.outcome === 'intent') {
    settleReceipt(draft, { ...own, outcome: 'unknown', settledAt: draft.at, error: waiting.error });
  }
  return undefined;
}

/** Repeats a read, or a write that has failed. If the step cannot be claimed, nobody reports the outcome of a read whose worker was lost, so its receipt is settled here. */
async function tryAgain(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: RunningStep | RetryableStep,
  own: Receipt | undefined,
): Promise<ClaimedStep | undefined> {
  const claimed = await claimOrFail(worker, state, draft, step, own);
  if (!claimed && own?.outcome === 'intent') {
    const error = recordedError('LEASE_LOST', `the worker that called ${step.tool} was lost`);
    settleReceipt(draft, { ...own, outcome: 'failed', settledAt: draft.at, error });
  }
  return claimed;
}

/**
 * The policies could not be read, or a flag is off: the step waits and is probed later. The step was due, so a `retryAt` in
 * the future was set in this draft; a step that waited for the flag before stays as it is while the flag is off.
 */
function waitingNow({ settings }: RunState, { steps, at }: RunDraft, { index }: Step): RetryableStep | undefined {
  const now = steps.get(index);
  if (now?.status !== 'failed_retryable') return undefined;
  const waitsForFlag = now.flag !== undefined && !isOn(settings, now.flag);
  return waitsForFlag || now.retryAt > at ? now : undefined;
}

/** Claims a step whose input is known. If it cannot be claimed, it fails with the reason. */
async function claimOrFail(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: RunningStep | RetryableStep | ReadyStep,
  earlier?: Receipt,
): Promise<ClaimedStep | undefined> {
  try {
    return await claimStep(worker, state, draft, { step, input: step.input, earlier });
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    if (!isOpenWrite(earlier)) fail(draft, step, resumeError(step, error), step);
    return undefined;
  }
}

/** A step of an older version may not fit this one: its tool was removed, or the form of its input has changed. */
const NO_LONGER_FITS: readonly string[] = ['WORKFLOW_INVALID', 'INPUT_INVALID'];

function resumeError({ status }: Step, { code, message }: CountersignError): RecordedError {
  if (status === 'ready' || !NO_LONGER_FITS.includes(code)) return recordedError(code, message);
  return recordedError('RUN_RESUME_FAILED', `it cannot continue from its last commit: ${message}`);
}

/** The run is being stopped, so it sends nothing more. A pause keeps the step for later, an end closes it. */
async function setAside(worker: Worker, draft: RunDraft, step: RunningStep | RetryableStep): Promise<undefined> {
  const own = await ownReceipt(worker, draft, step);
  if (own?.outcome === 'intent') {
    const outcome = isOpenWrite(own) ? 'unknown' : 'failed';
    settleReceipt(draft, { ...own, outcome, settledAt: draft.at, error: STOPPED_IN_FLIGHT });
  }
  if (step.status === 'failed_retryable') return;
  const { input, receiptKey } = step;
  const error = STOPPED_IN_FLIGHT;
  draft
    .put({
      ...factsOf(step, draft.at),
      input,
      receiptKey,
      status: 'failed_retryable',
      retryAt: draft.at,
      error,
      stopped: true,
    })
    .record({ type: 'step.retry_scheduled', step: step.id, index: step.index, retryAt: draft.at, error });
}

function askHuman(draft: RunDraft, step: RunningStep | RetryableStep, receipt: OpenReceipt): undefined {
  const error = recordedError(
    'OUTCOME_UNKNOWN',
    `it is unknown whether ${step.tool} reached ${receipt.target}; check the target (RUNBOOK, "A run needs a human")`,
  );
  settleReceipt(draft, { ...receipt, outcome: 'unknown', settledAt: draft.at, error });
  fail(draft, step, error, step);
}
