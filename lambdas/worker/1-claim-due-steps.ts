import { expireApproval } from '../approval/expire-approval.ts';
import { findOperation } from '../connectors/registry.ts';
import { enrich } from '../pipeline/enrich.ts';
import { triggerView } from '../pipeline/match-automations.ts';
import { hasTime } from '../proposal/attempt-time.ts';
import { hashOf, sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import { hasExpired, later } from '../run/lease.ts';
import type { OpenReceipt, Receipt } from '../run/receipt.ts';
import { attemptsOf } from '../run/retry-policy.ts';
import type { Run } from '../run/run.ts';
import type { By, RunDraft } from '../run/run-draft.ts';
import { factsOf, type ReadyStep, type RetryableStep, type RunningStep, type Step } from '../run/step.ts';
import { STOPPED_IN_FLIGHT } from '../run-changes/close-open-steps.ts';
import { awaitedEvent, concludeRun, SYSTEM, TIMEOUT } from '../run-changes/conclude-run.ts';
import { noteResume, overdueError } from '../run-changes/recover-run.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, PROBES_MAX, settleReceipt, succeed } from '../run-changes/step-endings.ts';
import { ownReceipt } from '../run-changes/step-receipt.ts';
import { render } from '../workflow/expressions/expressions.ts';
import { beginStep, startReadySteps } from './2-start-ready-steps.ts';
import { claimStep, isOpenWrite } from './4-claim-step.ts';
import type { ClaimedStep, FollowUp, Worker } from './worker.ts';

/** What is to be done with a run when a message asks to look at it; nothing if everything of it is someone else's. */
export async function claimDueSteps(worker: Worker, state: RunState, draft: RunDraft): Promise<FollowUp | undefined> {
  const { run } = state;
  if (run.status === 'paused') return expireApprovals(worker, state, draft);
  const inFlight = [...state.steps.values()].some(
    (step) => step.status === 'running' && !hasExpired(step.lease, draft.at),
  );
  // While a write is in flight the run is not ended under it; its lease runs out within the minute.
  const overdue = inFlight ? undefined : overdueError(state, draft.at);
  if (overdue) return endOverdue(worker, state, draft, overdue);
  if (run.status === 'queued') return start(worker, state, draft);
  noteResume(worker, state, draft);
  const holds: ClaimedStep[] = [];
  for (const step of state.steps.values()) {
    const held = await lookAtStep(worker, state, draft, step);
    if (held) holds.push(held);
  }
  return startReadySteps(worker, state, draft, holds);
}

/** A paused run does nothing, but what people were asked does not stay open for ever. */
async function expireApprovals(worker: Worker, state: RunState, draft: RunDraft): Promise<FollowUp | undefined> {
  for (const step of state.steps.values()) {
    if (step.status === 'waiting_approval') await expireApproval(worker.runs, draft, step);
  }
  return draft.isEmpty ? undefined : { holds: [], ...(await concludeRun(worker.runs, state, draft)) };
}

/** Queued to running in one commit: enrichment is local and deterministic, so nothing can fail between its stages. */
async function start(worker: Worker, state: RunState, draft: RunDraft): Promise<FollowUp> {
  const { settings, workflow, trigger } = state;
  const webhook = byWebhook(state.run.trigger);
  draft.move('enriching', webhook);
  try {
    const enrichment = enrich(trigger);
    if (workflow.deadlineSeconds !== undefined) {
      draft.note({ deadlineAt: later(draft.run.createdAt, workflow.deadlineSeconds * 1000) });
    }
    draft
      .note({ enrichment, startedAt: draft.at })
      .record({ type: 'run.enriched', enrichmentHash: hashOf(enrichment) });
    if (workflow.concurrencyKey !== undefined) {
      const { expressions } = worker;
      const context = { trigger: triggerView(trigger), enrichment };
      const text = await render({ expressions, tenant: draft.run.tenant, context }, workflow.concurrencyKey);
      const key = sha256Hex(`${workflow.name}\n${JSON.stringify(text)}`);
      draft.note({ concurrencyKey: key }).cap({ kind: 'take_key', key, runId: draft.run.runId });
    }
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    draft.move('failed_terminal', SYSTEM, recordedError(error.code, error.message));
    return { holds: [], ...(await concludeRun(worker.runs, state, draft)) };
  }
  const minute = draft.at.slice(0, 16);
  const ofTenant = settings.caps.maxRunsPerMinute;
  if (ofTenant !== undefined) draft.cap({ kind: 'count_start', minute, max: ofTenant });
  const ofWorkflow = workflow.caps?.maxRunsPerMinute;
  if (ofWorkflow !== undefined) draft.cap({ kind: 'count_start', minute, max: ofWorkflow, workflow: workflow.name });
  draft.move('ready', webhook).move('running', webhook);
  return startReadySteps(worker, state, draft);
}

/** Which event started the run. Who caused it is text of the payload, which no commit carries; they are a maker. */
function byWebhook({ source, event, key }: Run['trigger']): By {
  return { initiator: 'webhook', actor: source, externalEvent: { type: event, source, id: key } };
}

/** One step of a run that is under way: taken over, tried again, woken or given up, if its time has come. */
async function lookAtStep(
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
      if (step.awaits.until > now) return undefined;
      if (step.awaits.kind === 'time') succeed(draft, step, { output: { waitedUntil: step.awaits.until } });
      else
        fail(
          draft,
          step,
          recordedError('WAIT_TIMED_OUT', `no signal "${step.awaits.event}" came before ${step.awaits.until}`),
          { by: { ...TIMEOUT, externalEvent: awaitedEvent(step.awaits) } },
        );
      return undefined;
    case 'waiting_approval':
      await expireApproval(worker.runs, draft, step);
      return undefined;
    case 'ready':
      return hasTime(worker) && !state.run.stopRequest ? perform(worker, state, draft, step) : undefined;
    default:
      return undefined;
  }
}

/** A step that was tried before: its receipt says whether the target may have acted already. */
async function resume(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: RunningStep | RetryableStep,
): Promise<ClaimedStep | undefined> {
  if (state.run.stopRequest) return setAside(worker, draft, step);
  if (step.input === undefined) return beginStep(worker, state, draft, step.index);
  const own = await ownReceipt(worker, draft, step);
  if (!isOpenWrite(own)) return perform(worker, state, draft, step, own);
  const operation = findOperation(step.tool);
  const attemptsMax = attemptsOf(operation, state.workflow.steps[step.index]) + PROBES_MAX;
  if (own.effect === 'opaque' || step.attempt >= attemptsMax) return askHuman(draft, step, own);
  // If it may not be made again, by policy or until people agree, only somebody who looks there can tell what happened.
  const held = await perform(worker, state, draft, step, own);
  return held || waitsForPolicies(draft, step) ? held : askHuman(draft, step, own);
}

/**
 * Policies could not be read, so the step waits once more: nothing is decided yet, and what the earlier attempt did is
 * looked for when they can be read. Its time had come before, so a later one was set in this very draft.
 */
function waitsForPolicies({ steps, at }: RunDraft, { index }: Step): boolean {
  const now = steps.get(index);
  return now?.status === 'failed_retryable' && now.retryAt > at;
}

/** A step whose input is known: claimed, or failed for the reason it cannot be. */
async function perform(
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
    if (!isOpenWrite(earlier)) fail(draft, step, whyNot(step, error), step);
    return undefined;
  }
}

/** What was begun by an older version of the runtime may not fit this one: its tool is gone, or takes another input. */
const NO_LONGER_FITS: readonly string[] = ['WORKFLOW_INVALID', 'INPUT_INVALID'];

function whyNot({ status }: Step, { code, message }: CountersignError): RecordedError {
  if (status === 'ready' || !NO_LONGER_FITS.includes(code)) return recordedError(code, message);
  return recordedError('RUN_RESUME_FAILED', `it cannot go on from its last commit: ${message}`);
}

/** The run is being stopped: nothing of it is sent any more. A pause keeps the step for later, an end closes it. */
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
    .put({ ...factsOf(step, draft.at), input, receiptKey, status: 'failed_retryable', retryAt: draft.at, error })
    .record({ type: 'step.retry_scheduled', step: step.id, index: step.index, retryAt: draft.at, error });
}

function askHuman(draft: RunDraft, step: RunningStep | RetryableStep, receipt: OpenReceipt): undefined {
  const error = recordedError(
    'OUTCOME_UNKNOWN',
    `nobody knows whether ${step.tool} reached ${receipt.target}; look there (RUNBOOK, "A run needs a human")`,
  );
  settleReceipt(draft, { ...receipt, outcome: 'unknown', settledAt: draft.at, error });
  fail(draft, step, error, step);
}

async function endOverdue(worker: Worker, state: RunState, draft: RunDraft, error: RecordedError): Promise<FollowUp> {
  for (const step of state.steps.values()) if (step.status === 'running') await setAside(worker, draft, step);
  return { holds: [], ...(await concludeRun(worker.runs, state, draft, { overdue: error })) };
}
