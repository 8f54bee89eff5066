import { planExpiry } from '../approval/plan-expiry.ts';
import { findOperation } from '../connectors/registry.ts';
import { isoNow } from '../entry/ports.ts';
import { enrich } from '../pipeline/enrich.ts';
import { hashOf } from '../run/canonical-json.ts';
import { RunDraft } from '../run/commit.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { hasExpired } from '../run/lease.ts';
import type { Receipt } from '../run/receipt.ts';
import { DEFAULT_ATTEMPTS } from '../run/retry-policy.ts';
import type { RetryableStep, RunningStep, Step } from '../run/step.ts';
import { planClaim } from './plan-claim.ts';
import { endRun, SYSTEM } from './plan-endings.ts';
import { planNextStep } from './plan-next-step.ts';
import type { HeldReceipts, Plan, RunState, Worker } from './worker.ts';

/** What is to be done with a run when a message asks to look at it; nothing if it waits for someone else. */
export async function planTakeUp(worker: Worker, state: RunState, known: HeldReceipts): Promise<Plan | undefined> {
  const now = isoNow(worker.clock);
  const { run } = state;
  switch (run.status) {
    case 'queued':
      return run.deadlineAt <= now ? planTimeout(state, now) : planStart(worker, state, known, now);
    case 'running':
    case 'failed_retryable':
      return run.deadlineAt <= now ? planTimeout(state, now) : planDueStep(worker, state, known, now);
    case 'waiting_approval':
      return planExpiry(worker.runs, state, now);
    default:
      return undefined;
  }
}

/** Queued to running in one commit: enrichment is local and deterministic, so nothing can fail between its stages. */
async function planStart(worker: Worker, state: RunState, known: HeldReceipts, now: string): Promise<Plan> {
  const draft = new RunDraft(state.run, now).move('enriching', SYSTEM);
  try {
    const enrichment = enrich(state.trigger);
    draft.note({ enrichment, startedAt: now }).record({ type: 'run.enriched', enrichmentHash: hashOf(enrichment) });
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return endRun(draft, state.steps, 'failed_terminal', recordedError(error.code, error.message));
  }
  draft.move('ready', SYSTEM).move('running', SYSTEM);
  return planNextStep(worker, state, draft, state.steps, 0, known);
}

async function planDueStep(
  worker: Worker,
  state: RunState,
  known: HeldReceipts,
  now: string,
): Promise<Plan | undefined> {
  const current = [...state.steps.values()].at(-1);
  if (!current || !isDue(current, now)) return undefined;
  const draft = new RunDraft(state.run, now);
  if (state.run.status === 'failed_retryable') draft.move('running', SYSTEM);
  if (current.status === 'ready') return planNextStep(worker, state, draft, state.steps, current.index, known);
  if (current.status !== 'running' && current.status !== 'failed_retryable') return undefined;
  return planResume(worker, state, draft, current, known);
}

function isDue(step: Step, now: string): boolean {
  if (step.status === 'running') return hasExpired(step.lease, now);
  if (step.status === 'failed_retryable') return step.retryAt <= now;
  return step.status === 'ready';
}

/** A step that was tried before: its receipt says whether the target may have acted already. */
async function planResume(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: RunningStep | RetryableStep,
  known: HeldReceipts,
): Promise<Plan> {
  const { tenant, runId } = state.run;
  const [receipt] = step.receiptKey ? await worker.runs.receipts(tenant, [step.receiptKey]) : [];
  const own = receipt && receipt.runId === runId && receipt.stepIndex === step.index ? receipt : undefined;
  const unsettled = own?.outcome === 'intent' || own?.outcome === 'unknown';
  const attemptsMax = state.workflow.steps[step.index]?.retry?.attempts ?? DEFAULT_ATTEMPTS;
  const opaque = findOperation(step.tool)?.effect === 'opaque';
  if (unsettled && (opaque || step.attempt >= attemptsMax)) return planAskHuman(draft, state, step, own);
  const plan = await planClaim(worker, state, draft, state.steps, { step, unsettled }, known);
  return plan.reused ? planNextStep(worker, state, draft, plan.steps, step.index + 1, known) : plan;
}

function planAskHuman(draft: RunDraft, state: RunState, step: RunningStep | RetryableStep, receipt: Receipt): Plan {
  const error = recordedError(
    'OUTCOME_UNKNOWN',
    `nobody knows whether ${step.tool} reached ${receipt.target}; look there, then resolve the run by hand`,
  );
  const { input: _input, ...facts } = step;
  const failed: Step = { ...facts, status: 'failed_terminal', error, updatedAt: draft.at, completedAt: draft.at };
  draft
    .writeStep(failed, step.leaseVersion)
    .writeReceipt({ ...receipt, outcome: 'unknown', settledAt: draft.at, error }, 'ours')
    .record(
      { type: 'write.settled', step: step.id, receiptKey: receipt.key, outcome: 'unknown' },
      { type: 'step.failed', step: step.id, index: step.index, error },
    );
  return endRun(draft, state.steps, 'needs_human', error);
}

function planTimeout(state: RunState, now: string): Plan {
  const error = recordedError('RUN_TIMED_OUT', `the run was not finished by its deadline, ${state.run.deadlineAt}`);
  return endRun(new RunDraft(state.run, now), state.steps, 'timed_out', error, {
    initiator: 'timeout',
    actor: 'system',
  });
}
