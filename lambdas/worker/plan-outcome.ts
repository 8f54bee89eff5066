import { isoNow } from '../entry/ports.ts';
import { RunDraft } from '../run/commit.ts';
import { type RecordedError, recordedError } from '../run/errors.ts';
import { later, QUARANTINE_MS } from '../run/lease.ts';
import type { Receipt, SucceededReceipt } from '../run/receipt.ts';
import { DEFAULT_ATTEMPTS } from '../run/retry-policy.ts';
import { STEP_OUTPUT_MAX_BYTES, type Step } from '../run/step.ts';
import type { StepOutcome } from './perform-step.ts';
import { planFailure, planRetry, succeeded } from './plan-endings.ts';
import { planNextStep } from './plan-next-step.ts';
import type { HeldReceipts, HeldStep, Plan, Worker } from './worker.ts';

/** The commit that follows a performed step: its outcome and receipt, and with them whatever comes next. */
export async function planOutcome(
  worker: Worker,
  held: HeldStep,
  outcome: StepOutcome,
  known: HeldReceipts,
): Promise<Plan> {
  const draft = new RunDraft(held.state.run, isoNow(worker.clock));
  if (outcome.kind !== 'done') return planFailedAttempt(worker, held, outcome, draft);
  const { step } = held;
  settle(draft, held, { ...held.receipt, ...outcome.result, outcome: 'succeeded', settledAt: draft.at });
  const size = Buffer.byteLength(JSON.stringify(outcome.result.output ?? null));
  if (size > STEP_OUTPUT_MAX_BYTES) {
    const error = recordedError(
      'OUTPUT_TOO_LARGE',
      `${step.tool} returned ${size} bytes; at most ${STEP_OUTPUT_MAX_BYTES} fit`,
    );
    return planFailure(draft, new Map(held.state.steps), factsOf(held, draft.at), error);
  }
  const done: Step & { status: 'succeeded' } = {
    ...factsOf(held, draft.at),
    status: 'succeeded',
    output: outcome.result.output,
    receiptKey: held.receipt.key,
    completedAt: draft.at,
  };
  draft.writeStep(done, step.leaseVersion).record(succeeded(done));
  const steps = new Map(held.state.steps).set(step.index, done);
  return planNextStep(worker, held.state, draft, steps, step.index + 1, known);
}

/** Refused or unknown: tried again while attempts remain; an unknown outcome only after its quarantine. */
function planFailedAttempt(
  worker: Worker,
  held: HeldStep,
  outcome: Exclude<StepOutcome, { kind: 'done' }>,
  draft: RunDraft,
): Plan {
  const { step, receipt, state } = held;
  const unknown = outcome.kind === 'unknown';
  settle(draft, held, {
    ...receipt,
    outcome: unknown ? 'unknown' : 'failed',
    settledAt: draft.at,
    error: outcome.error,
  });
  const attemptsMax = state.workflow.steps[step.index]?.retry?.attempts ?? DEFAULT_ATTEMPTS;
  const mayRetry = outcome.retryable && step.attempt < attemptsMax && !(unknown && receipt.effect === 'opaque');
  if (mayRetry) {
    const waiting = { ...factsOf(held, draft.at), input: step.input, receiptKey: receipt.key };
    return planRetry(worker, draft, state.steps, waiting, step.leaseVersion, outcome.error, {
      ...(outcome.kind === 'refused' && { retryAfterMs: outcome.retryAfterMs }),
      ...(unknown && { notBefore: later(receipt.intentAt, QUARANTINE_MS) }),
    });
  }
  return planFailure(
    draft,
    new Map(state.steps),
    factsOf(held, draft.at),
    finalError(step.attempt, attemptsMax, outcome),
    unknown ? 'needs_human' : 'failed_terminal',
  );
}

function finalError(
  attempt: number,
  attemptsMax: number,
  outcome: { error: RecordedError; retryable: boolean },
): RecordedError {
  if (!outcome.retryable || attempt < attemptsMax) return outcome.error;
  return recordedError('RETRIES_EXHAUSTED', `${outcome.error.message}; gave up after ${attempt} attempts`);
}

function settle(draft: RunDraft, { step }: HeldStep, receipt: Receipt): void {
  const recovered = (receipt as SucceededReceipt).recovered;
  draft.writeReceipt(receipt, 'ours').record({
    type: 'write.settled',
    step: step.id,
    receiptKey: receipt.key,
    outcome: receipt.outcome,
    ...(recovered && { recovered }),
  });
}

function factsOf({ step }: HeldStep, at: string) {
  const { schemaVersion, index, id, tool, leaseVersion, attempt } = step;
  return { schemaVersion, index, id, tool, leaseVersion, attempt, updatedAt: at };
}
