import { isoNow } from '../entry/ports.ts';
import { isAsMade, type TouchedState } from '../run/receipt.ts';
import { holdsUnknown } from './known-after-apply.ts';
import type { Planner, Walk } from './plan.ts';
import type { CalledStep } from './plan-call.ts';

/** Who has made the identical write: a run, or an earlier step of this plan by then. */
export type MadeBy = { runId: string } | { step: string };

interface IdenticalWrite {
  by: MadeBy;
  /** What the run that made it was answered. */
  output?: unknown;
}

/** The identical write that the worker would rest on instead of making this one, if there is any. */
export async function findDuplicateWrite(
  { runs, clock }: Planner,
  { madeBySteps }: Walk,
  { step, input, reached, conditional }: CalledStep,
  { tenant, key, after }: { tenant: string; key: string; after?: TouchedState },
  now: TouchedState | undefined,
): Promise<IdenticalWrite | undefined> {
  if (step.dedupeScope === 'run' || holdsUnknown(input)) return undefined;
  const earlier = madeBySteps.get(key);
  if (earlier !== undefined) return { by: { step: earlier } };
  const [held] = await runs.receipts(tenant, [key]);
  if (held?.outcome === 'succeeded' && held.undoBegunAt === undefined && isAsMade(held, after, now, isoNow(clock))) {
    return { by: { runId: held.runId }, output: held.output };
  }
  if (reached && !conditional) madeBySteps.set(key, step.id);
  return undefined;
}
