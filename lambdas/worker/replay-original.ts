import { isReusable } from '../proposal/find-duplicate-write.ts';
import type { ProposedCall } from '../proposal/propose-call.ts';
import { keyIsFree, type Receipt } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { LoadedRun } from '../run/run-store.ts';
import { receiptKeyOf, type StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { succeed } from '../run-changes/step-endings.ts';
import { repeatedSteps, succeededSteps } from '../workflow/repeated-steps.ts';
import type { Workflow } from '../workflow/workflow.ts';
import { nextAttempt, recordReuse } from './reuse-identical-write.ts';
import type { Worker } from './worker.ts';

/**
 * In a replay, a step that is not repeated succeeds with the output of the original run, and reuses its write. True if it
 * did. A write that was undone since is made again.
 */
export async function copyStep(
  { runs }: Pick<Worker, 'runs'>,
  { run, workflow, original }: RunState,
  draft: RunDraft,
  step: StepFacts,
): Promise<boolean> {
  const from = run.request?.replay?.from;
  const earlier = original?.steps.find(({ index }) => index === step.index);
  if (!original || from === undefined || earlier?.status !== 'succeeded') return false;
  if (repeatedIn(original, workflow, from).has(step.index)) return false;
  const { output, skipped, receiptKey } = earlier;
  const [receipt] = receiptKey === undefined ? [] : await runs.receipts(run.tenant, [receiptKey]);
  const write = receipt?.effect === 'read' ? undefined : receipt;
  if (write && !isReusable(write)) return false;
  const copiedFrom = original.run.runId;
  draft.record({ type: 'step.copied', step: step.id, index: step.index, from: copiedFrom });
  if (write) recordReuse(draft, step, write);
  const copied = write ? nextAttempt(step, draft.at) : step;
  succeed(draft, copied, { output, ...(skipped && { skipped }), ...(write && { receiptKey }), copiedFrom });
  return true;
}

/** An original is loaded once for each message; its replay starts up to a thousand steps. */
const REPEATED = new WeakMap<LoadedRun, ReadonlySet<number>>();

function repeatedIn(original: LoadedRun, workflow: Workflow, from: string): ReadonlySet<number> {
  const known = REPEATED.get(original) ?? repeatedSteps(workflow, from, succeededSteps(original));
  REPEATED.set(original, known);
  return known;
}

/**
 * The receipt of the original run's write, if the step of the replay would make the identical write. A replay never makes
 * it again: however long ago it was made, even if the target shows other values, and also with `dedupeScope: run`. Only a
 * session is started again, because its answer may differ.
 */
export async function originalWrite(
  { runs }: Pick<Worker, 'runs'>,
  { run, original }: RunState,
  step: StepFacts,
  { operation, proposal }: ProposedCall,
): Promise<Receipt | undefined> {
  if (!original || operation.effect === 'read' || operation.asksModel || step.undoes !== undefined) return undefined;
  const earlier = original.steps.find(({ index }) => index === step.index);
  const key = earlier && receiptKeyOf(earlier);
  if (key === undefined) return undefined;
  const [receipt] = await runs.receipts(run.tenant, [key]);
  if (!receipt || keyIsFree(receipt)) return undefined;
  const inRun = (runId: string) => `:${runId}:${step.id}`;
  const ofAnyRun = proposal.key.endsWith(inRun(run.runId))
    ? proposal.key.slice(0, -inRun(run.runId).length)
    : proposal.key;
  return key === ofAnyRun || key === `${ofAnyRun}${inRun(receipt.runId)}` ? receipt : undefined;
}
