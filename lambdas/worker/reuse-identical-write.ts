import type { Operation, Proposal } from '../connectors/connector.ts';
import { look } from '../proposal/read-target.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { isAsMade, type Receipt } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf, type StepFacts } from '../run/step.ts';
import { scheduleRetry, succeed } from '../run-changes/step-endings.ts';
import { receiptOf } from '../run-changes/step-receipt.ts';
import type { Worker } from './worker.ts';

/** How soon, and at least how often, a step looks again whether somebody else's identical write was made. */
const LOOKS_AT_OTHERS_AFTER_MS = { first: 30_000, last: 10 * 60_000 };

export interface Asking {
  step: StepFacts;
  input: unknown;
  operation: Operation;
  proposal: Proposal;
}

/**
 * Whether a held key is to be met as such. What another run wrote may have been changed since: then asking for it again
 * asks for a new write.
 */
export async function stillStands(
  worker: Worker,
  draft: RunDraft,
  { operation, input, proposal }: Asking,
  held: Receipt,
): Promise<boolean> {
  const settled = held.outcome === 'succeeded' && held.undoBegunAt === undefined && held.runId !== draft.run.runId;
  if (!settled) return true;
  const seen = operation.before && proposal.after && (await look(worker, draft.run.tenant, operation, input));
  return isAsMade(held, proposal.after, seen && 'before' in seen ? seen.before : undefined, draft.at);
}

/** Before people are asked: nobody is bothered with a write that was made already. */
export async function reuseIdenticalWrite(worker: Worker, draft: RunDraft, asking: Asking): Promise<boolean> {
  const [held] = await worker.runs.receipts(draft.run.tenant, [asking.proposal.key]);
  if (held?.outcome !== 'succeeded' || held.undoBegunAt !== undefined) return false;
  if (!(await stillStands(worker, draft, asking, held))) return false;
  reuseOrWait(worker, draft, asking, held);
  return true;
}

/** Somebody has the identical write: what is made is rested on, what is open is waited for. */
export function reuseOrWait(
  worker: Pick<Worker, 'random'>,
  draft: RunDraft,
  { step, input }: Pick<Asking, 'step' | 'input'>,
  held: Receipt,
): undefined {
  const { runId } = draft.run;
  if (held.outcome === 'succeeded' && held.undoBegunAt === undefined) {
    // From now on it is not only the other run's to take back.
    if (held.runId !== runId && held.reusedBy === undefined) {
      draft.putReceipt({ ...held, reusedBy: runId }, { asRead: held });
    }
    draft.record({ type: 'write.reused', step: step.id, receiptKey: held.key, firstRunId: held.runId });
    const ofOtherStep = held.runId === runId && held.stepIndex !== step.index;
    succeed(draft, claim(step, draft.at), {
      output: held.output,
      receiptKey: held.key,
      ...(ofOtherStep && { madeByStep: held.stepIndex }),
    });
    return undefined;
  }
  const doing = held.outcome === 'succeeded' ? 'taking the identical write back' : 'making the identical write';
  const error = recordedError('CONFLICT', `run ${held.runId} is ${doing}; waiting for its outcome`);
  // It claims nothing yet: its fencing number and its attempts stay, and its write is counted when it is really begun.
  const waiting = { ...step, input, receiptKey: held.key };
  // The longer it has been open, the less likely it is settled this very minute.
  const openMs = Date.parse(draft.at) - Date.parse(held.intentAt);
  const { first, last } = LOOKS_AT_OTHERS_AFTER_MS;
  scheduleRetry(worker, draft, waiting, error, { retryAfterMs: Math.min(Math.max(first, openMs / 2), last) });
}

/** While a write is taken back nobody may come to rest on it; what someone rests on already is not taken back. */
export async function reserveUndone(worker: Worker, draft: RunDraft, index: number): Promise<void> {
  const undone = draft.steps.get(index);
  const receipt = undone && (await receiptOf(worker, draft, undone));
  if (receipt?.outcome !== 'succeeded' || receipt.undoBegunAt !== undefined) return;
  if (receipt.reusedBy !== undefined) throw new CountersignError('DRIFTED', restsOnIt(receipt.reusedBy));
  draft.putReceipt({ ...receipt, undoBegunAt: draft.at }, { asRead: receipt });
}

export const restsOnIt = (runId: string) => `run ${runId} asked for the identical write and rests on it`;

/** What the next claimant of the step is known by. */
export function claim(step: StepFacts, at: string): StepFacts {
  return { ...factsOf(step, at), leaseVersion: step.leaseVersion + 1, attempt: step.attempt + 1 };
}
