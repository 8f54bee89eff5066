import { promised } from '../outbox/outbox.ts';
import { hashOf } from '../run/canonical-json.ts';
import type { RunDraft, StepWrite } from '../run/commit.ts';
import type { RecordedError } from '../run/errors.ts';
import { earlier, later } from '../run/lease.ts';
import { backoffMs } from '../run/retry-policy.ts';
import { isTerminal, type Run, type TerminalStatus } from '../run/run.ts';
import { type RetryableStep, STEP_SCHEMA_VERSION, type Step } from '../run/step.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import type { Plan, Worker } from './worker.ts';

/** The ways a plan can end: handed back, waiting for a retry, failed, or with the run's terminal commit. */

export const SYSTEM = { initiator: 'system', actor: 'worker' } as const;

/** How long a ready step may wait for its message before the sweeper sends another. */
export const PICK_UP_WITHIN_MS = 30_000;

export type Steps = ReadonlyMap<number, Step>;

/** Out of time, not out of work: the step waits as ready, and a message brings the next worker. */
export function planHandBack(draft: RunDraft, steps: Map<number, Step>, definition: WorkflowStep, index: number): Plan {
  const ready: Step = { ...stepFacts(definition, index, steps.get(index), draft.at), status: 'ready' };
  draft
    .note({ dueAt: dueBy(draft.run, later(draft.at, PICK_UP_WITHIN_MS)) })
    .writeStep(ready, expectedVersion(steps, index))
    .record({ type: 'step.ready', step: ready.id, index });
  return { draft, steps: steps.set(index, ready), wakeAfterMs: 0, promises: [] };
}

/** The step waits for its backoff, and the run with it; past its deadline there is nothing to wait for. */
export function planRetry(
  worker: Worker,
  draft: RunDraft,
  steps: Steps,
  step: Omit<RetryableStep, 'status' | 'retryAt' | 'error' | 'updatedAt'>,
  expected: StepWrite['expectedLeaseVersion'],
  error: RecordedError,
  wait: { retryAfterMs?: number; notBefore?: string } = {},
): Plan {
  const backoff = later(draft.at, backoffMs(step.attempt, worker.random(), wait.retryAfterMs));
  const retryAt = wait.notBefore !== undefined && wait.notBefore > backoff ? wait.notBefore : backoff;
  const waiting: RetryableStep = { ...step, status: 'failed_retryable', retryAt, error, updatedAt: draft.at };
  draft
    .writeStep(waiting, expected)
    .record({ type: 'step.retry_scheduled', step: step.id, index: step.index, retryAt, error })
    .move('failed_retryable', { ...SYSTEM, reason: error.code })
    .note({ dueAt: dueBy(draft.run, retryAt) });
  return {
    draft,
    steps: new Map(steps).set(step.index, waiting),
    wakeAfterMs: Date.parse(retryAt) - Date.parse(draft.at),
    promises: [],
  };
}

export type StepFacts = ReturnType<typeof stepFacts>;

export function planFailure(
  draft: RunDraft,
  steps: Map<number, Step>,
  facts: StepFacts,
  error: RecordedError,
  status: TerminalStatus = 'failed_terminal',
): Plan {
  const failed: Step = { ...facts, status: 'failed_terminal', error, completedAt: draft.at };
  draft
    .writeStep(failed, expectedVersion(steps, facts.index))
    .record({ type: 'step.failed', step: facts.id, index: facts.index, error });
  return endRun(draft, steps.set(facts.index, failed), status, error);
}

/** The terminal commit: the run ends, and its evidence is promised. */
export function endRun(
  draft: RunDraft,
  steps: Steps,
  status: TerminalStatus,
  error?: RecordedError,
  by: Parameters<RunDraft['move']>[1] = SYSTEM,
): Plan {
  draft.move(status, by, error);
  const { tenant, runId } = draft.run;
  const seal = promised({ kind: 'seal_evidence', tenant, runId }, draft.at);
  return { draft: draft.promise(seal), steps, promises: [seal] };
}

export function stepFacts(definition: WorkflowStep, index: number, earlierRow: Step | undefined, at: string) {
  return {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id: definition.id,
    tool: definition.tool,
    leaseVersion: earlierRow?.leaseVersion ?? 0,
    attempt: earlierRow?.attempt ?? 0,
    updatedAt: at,
  } as const;
}

export function expectedVersion(steps: Steps, index: number): StepWrite['expectedLeaseVersion'] {
  return steps.get(index)?.leaseVersion ?? 'new';
}

export function dueBy(run: Run, at: string): string {
  return isTerminal(run) ? at : earlier(at, run.deadlineAt);
}

export function succeeded(step: Step & { status: 'succeeded' }) {
  return {
    type: 'step.succeeded' as const,
    step: step.id,
    index: step.index,
    outputHash: hashOf(step.output ?? null),
    ...(step.skipped && { skipped: step.skipped }),
  };
}
