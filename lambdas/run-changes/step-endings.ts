import { hashOf } from '../run/canonical-json.ts';
import { type RecordedError, recordedError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import type { Receipt } from '../run/receipt.ts';
import { backoffMs } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { FlagName } from '../run/settings/flags.ts';
import {
  endedAt,
  type FailedStep,
  factsOf,
  type Prepared,
  type RetryableStep,
  STEP_OUTPUT_MAX_BYTES,
  type StepFacts,
  type SucceededStep,
} from '../run/step.ts';

/** How often a write of unknown outcome is probed after its last attempt. */
export const PROBES_MAX = 3;

export function succeed(
  draft: RunDraft,
  step: StepFacts,
  ending: Pick<SucceededStep, 'output' | 'receiptKey' | 'skipped' | 'madeByStep' | 'copiedFrom'>,
): void {
  const size = Buffer.byteLength(JSON.stringify(ending.output ?? null));
  if (size > STEP_OUTPUT_MAX_BYTES) {
    const error = recordedError(
      'OUTPUT_TOO_LARGE',
      `the output of ${step.tool} is ${size} bytes; the limit is ${STEP_OUTPUT_MAX_BYTES}`,
    );
    const { receiptKey } = ending;
    fail(draft, step, error, { receiptKey, ...(receiptKey !== undefined && { wrote: true }) });
    return;
  }
  const done: SucceededStep = {
    ...factsOf(step, draft.at),
    status: 'succeeded',
    ...endedAt(step, draft.at),
    ...ending,
  };
  draft.put(done).record(succeeded(done));
}

function succeeded(step: SucceededStep) {
  return {
    type: 'step.succeeded' as const,
    step: step.id,
    index: step.index,
    outputHash: hashOf(step.output ?? null),
    ...(step.skipped && { skipped: step.skipped }),
  };
}

export function fail(
  draft: RunDraft,
  step: StepFacts,
  error: RecordedError,
  {
    input,
    receiptKey,
    wrote,
    mayHaveWritten,
    by,
  }: Partial<Prepared> & Pick<FailedStep, 'wrote' | 'mayHaveWritten' | 'by'> = {},
): void {
  draft
    .put({
      ...factsOf(step, draft.at),
      input,
      receiptKey,
      ...(wrote && { wrote }),
      ...(mayHaveWritten && { mayHaveWritten }),
      ...(by && { by }),
      status: 'failed_terminal',
      error,
      ...endedAt(step, draft.at),
    })
    .record({ type: 'step.failed', step: step.id, index: step.index, error });
}

/** Retries the step after its backoff, and not before an earlier request has reached the target or is lost. */
export function scheduleRetry(
  { random }: { random: () => number },
  draft: RunDraft,
  step: StepFacts & Partial<Prepared>,
  error: RecordedError,
  wait: { retryAfterMs?: number; notBefore?: string; delaysMs?: number[]; flag?: FlagName } = {},
): void {
  const backoff = later(draft.at, backoffMs(step.attempt, random(), wait.retryAfterMs, wait.delaysMs));
  const retryAt = wait.notBefore !== undefined && wait.notBefore > backoff ? wait.notBefore : backoff;
  const flag = wait.flag !== undefined && { flag: wait.flag };
  const waiting: RetryableStep = {
    ...factsOf(step, draft.at),
    input: step.input,
    receiptKey: step.receiptKey,
    status: 'failed_retryable',
    retryAt,
    error,
    ...flag,
  };
  draft
    .put(waiting)
    .record({ type: 'step.retry_scheduled', step: step.id, index: step.index, retryAt, error, ...flag });
}

/** Gives a receipt its outcome, in the same commit as its step. */
export function settleReceipt(draft: RunDraft, receipt: Exclude<Receipt, { outcome: 'intent' }>): void {
  draft.putReceipt(receipt, 'ours').record({
    type: 'write.settled',
    step: receipt.stepId,
    receiptKey: receipt.key,
    outcome: receipt.outcome,
    ...(receipt.effect === 'read' && { read: true as const }),
    ...(receipt.outcome === 'succeeded' && receipt.recovered && { recovered: receipt.recovered }),
  });
}
