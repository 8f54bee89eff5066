import { CountersignError, type ErrorCode, recordedError } from '../run/errors.ts';
import { hasExpired } from '../run/lease.ts';
import { isTerminal } from '../run/run.ts';
import { ContextMissing, draftAndCommit, loadState, passSlotOn } from '../run-changes/commit-run.ts';
import { concludeRun, SYSTEM } from '../run-changes/conclude-run.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { StepMessage } from '../run-changes/step-queue.ts';
import { claimDueSteps } from './1-claim-due-steps.ts';
import { settleOutcome } from './6-settle-outcome.ts';
import { performStep, type StepOutcome } from './executor/in-process-executor.ts';
import type { ClaimedStep, Worker } from './worker.ts';

/** Others may move the run while a step of ours is at work: its outcome is drafted again on what they left. */
const OUTCOME_TRIES_MAX = 8;

/**
 * THE SPINE. A message says "look at this run"; this worker takes up what is due, and goes on from step to step
 * for as long as it holds leases and has time:
 *
 *   load -> take up (start, or claim what is due: lease + intent in one commit)
 *        -> perform at the target -> commit the outcome, and with it the next steps' leases and intents -> perform -> ...
 *        -> terminal commit
 *
 * Steps whose needs are met run side by side; their outcomes are committed one after the other.
 * Policy and approval stand between proposing a write and committing its intent (3-authorize-call.ts, 4-claim-step.ts).
 */
export function processRun(worker: Worker, message: StepMessage): Promise<void> {
  return goOn(worker, message).catch((error) => giveUp(worker, message, error));
}

async function goOn(worker: Worker, message: StepMessage): Promise<void> {
  let state = await loadState(worker, message);
  if (!state || isTerminal(state.run)) return;
  const atWork = new Map<number, Promise<{ held: ClaimedStep; outcome: StepOutcome }>>();
  const begin = (from: RunState, holds: ClaimedStep[]) => {
    for (const held of holds) {
      const performed = performStep(worker, from.run.tenant, from.run.runId, held);
      atWork.set(
        held.step.index,
        performed.then((outcome) => ({ held, outcome })),
      );
    }
  };

  const taken = await draftAndCommit(worker, state, (draft, from) => claimDueSteps(worker, from, draft));
  if (taken.outcome === 'no_slot') await passSlotOn(worker, state, message, taken.refused);
  if (taken.outcome !== 'committed') return;
  state = taken.state;
  begin(state, taken.holds);
  // A commit that could not be made must not leave other steps behind: work that nobody waits for freezes with this
  // sandbox, and would write to its target whenever the sandbox thaws, under a lease long lost.
  const failures: unknown[] = [];
  while (atWork.size > 0) {
    const { held, outcome } = await Promise.race(atWork.values());
    atWork.delete(held.step.index);
    try {
      const settled = await commitOutcome(worker, state, held, outcome);
      if (!settled) {
        noteLostLease(worker, message, held, outcome);
        continue;
      }
      state = settled.state;
      begin(state, settled.holds);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Storing it fails each time it is tried. */
const NEVER_STORED: readonly ErrorCode[] = ['ROW_TOO_LARGE', 'KEY_TOO_LONG'];

/** What no row can hold, or a run whose workflow or trigger is gone, would fail each time: the run ends, and says why. */
async function giveUp(worker: Worker, message: StepMessage, error: unknown): Promise<void> {
  const final =
    error instanceof ContextMissing || (error instanceof CountersignError && NEVER_STORED.includes(error.code));
  if (!final) throw error;
  const state = error instanceof ContextMissing ? error.state : await loadState(worker, message);
  if (!state || isTerminal(state.run)) return;
  await draftAndCommit(worker, state, async (draft, from) => {
    const inFlight = [...from.steps.values()].filter((step) => step.status === 'running');
    // Somebody who still knows the workflow may be at work; their lease runs out first.
    if (error instanceof ContextMissing && inFlight.some(({ lease }) => !hasExpired(lease, draft.at))) return undefined;
    const to = inFlight.length > 0 ? 'needs_human' : 'failed_terminal';
    draft.move(to, SYSTEM, recordedError(error.code, error.message));
    return { holds: [], ...(await concludeRun(worker.runs, from, draft)) };
  });
}

/** The step is somebody else's by now, or the run has ended: this worker writes nothing more about it. */
function noteLostLease(
  worker: Worker,
  { tenant, runId }: StepMessage,
  { step }: ClaimedStep,
  outcome: StepOutcome,
): void {
  const why = outcome.kind === 'lease_lost' ? outcome.error.message : 'somebody else has moved the run since';
  worker.log.warn('a worker lost its lease and stops', { code: 'LEASE_LOST', tenant, runId, step: step.id, why });
}

/** Commits what became of a held step, on fresher and fresher views of the run, while the step is still ours. */
async function commitOutcome(worker: Worker, from: RunState, held: ClaimedStep, outcome: StepOutcome) {
  if (outcome.kind === 'lease_lost') return undefined;
  const { tenant, runId } = from.run;
  let state: RunState | undefined = from;
  for (let tries = 1; state && tries <= OUTCOME_TRIES_MAX; tries += 1) {
    const now = state.steps.get(held.step.index);
    const ours = now?.status === 'running' && now.leaseVersion === held.step.leaseVersion;
    if (!ours || isTerminal(state.run)) return undefined;
    const drafted = await draftAndCommit(worker, state, (draft, view) =>
      settleOutcome(worker, view, draft, held, outcome),
    );
    if (drafted.outcome === 'committed') return drafted;
    state = await loadState(worker, { tenant, runId });
  }
  return undefined;
}
