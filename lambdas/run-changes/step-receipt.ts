import type { Receipt } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { type FailedStep, type RetryableStep, type RunningStep, receiptKeyOf, type Step } from '../run/step.ts';
import type { RunChanger } from './run-changer.ts';

/** The receipt of a step, from this draft or from the store. */
export async function receiptOf(
  { runs }: Pick<RunChanger, 'runs'>,
  draft: RunDraft,
  step: Step,
): Promise<Receipt | undefined> {
  const key = receiptKeyOf(step);
  if (key === undefined) return undefined;
  return draft.receipt(key) ?? (await runs.receipts(draft.run.tenant, [key]))[0];
}

/** The receipt of a step if the step itself made it; another run may have the same key with an identical write. */
export async function ownReceipt(
  { runs }: Pick<RunChanger, 'runs'>,
  draft: RunDraft,
  step: RunningStep | RetryableStep | FailedStep,
): Promise<Receipt | undefined> {
  const { tenant, runId } = draft.run;
  const [receipt] = step.receiptKey ? await runs.receipts(tenant, [step.receiptKey]) : [];
  return receipt?.runId === runId && receipt.stepIndex === step.index ? receipt : undefined;
}
