import { findOperation } from '../connectors/registry.ts';
import { TargetRefused } from '../connectors/target-errors.ts';
import { readTime } from '../proposal/attempt-time.ts';
import { resolveNames } from '../proposal/read-target.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import { readLater } from '../run-changes/read-later.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { Worker } from './worker.ts';

/**
 * The input of a step with ids instead of names of records. It becomes the fixed input of the step: a later attempt, or a
 * worker that uses an approval, does not look up the names again. Nothing if the target could not be read; the step then
 * starts again later.
 */
export async function resolveStepNames(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: StepFacts,
  input: unknown,
): Promise<{ input: unknown } | undefined> {
  const operation = findOperation(step.tool);
  if (!operation) return { input };
  try {
    return {
      input: await resolveNames(worker, draft.run.tenant, operation, input, readTime(worker, draft.run, step.index)),
    };
  } catch (error) {
    if (!(error instanceof TargetRefused)) throw error;
    const { message: why, retryable, retryAfterMs } = error;
    const unread = { what: `the records that ${step.tool} names`, finally: 'nothing was proposed' };
    // Without an input, the next attempt starts the step from its beginning.
    readLater(worker, state, draft, step, { why, retryable, retryAfterMs }, unread);
    return undefined;
  }
}
