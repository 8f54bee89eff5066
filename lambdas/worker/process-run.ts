import { isoNow } from '../entry/ports.ts';
import { resendDelayMs, sealEntry } from '../outbox/outbox.ts';
import { CountersignError, type ErrorCode, recordedError } from '../run/errors.ts';
import { hasExpired, later } from '../run/lease.ts';
import { isTerminal, type TerminalRun } from '../run/run.ts';
import { ContextMissing, draftAndCommit, loadState } from '../run-changes/commit-run.ts';
import { concludeRun } from '../run-changes/conclusion/conclude-run.ts';
import { SYSTEM } from '../run-changes/conclusion/next-status.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { StepMessage } from '../run-changes/step-queue.ts';
import { offerSlotToNext } from '../run-changes/wake-next-run.ts';
import { claimDueSteps } from './1-claim-due-steps.ts';
import { startReadySteps } from './2-start-ready-steps.ts';
import type { Dispatched } from './5-executor.ts';
import { reportOutcome } from './6-report-outcome.ts';
import { endSession } from './session/finalize-session.ts';
import { watchAfterLostRace, watchRenewedLease } from './watch-lease.ts';
import type { ClaimedStep, Worker } from './worker.ts';

/**
 * THE MAIN LOOP. A message says that a run has work. The worker claims the steps that are due and continues from step to step
 * while it has leases and time. The numbered files are the stages:
 *
 *   load the run
 *     -> 1 claim due steps -> 2 start ready steps -> for each step: 3 authorize the call -> 4 claim (lease + intent)
 *     -> commit
 *     -> 5 the executor performs the claimed steps, in parallel
 *     -> 6 report each outcome under its lease -> 7 settle it, then again from 2, in one commit
 *     -> until nothing is claimed; the last commit ends the run (run-changes/conclusion/conclude-run.ts)
 */
export function processRun(worker: Worker, message: StepMessage): Promise<void> {
  if (message.endSession) return endSession(worker, message, message.endSession);
  return processSteps(worker, message).catch((error) => endUnprocessable(worker, message, error));
}

async function processSteps(worker: Worker, message: StepMessage): Promise<void> {
  let state = await loadState(worker, message);
  if (!state) return;
  if (isTerminal(state.run)) return requestSeal(worker, state.run);
  await watchRenewedLease(worker, message, state);
  const drafted = await draftAndCommit(worker, state, (draft, from) => claimDueSteps(worker, from, draft));
  if (drafted.outcome === 'lost') await watchAfterLostRace(worker, message);
  if (drafted.outcome === 'no_slot') await offerSlotToNext(worker, state, message, drafted.refused);
  if (drafted.outcome !== 'committed') return;
  state = drafted.state;

  const atWork = new Map<number, Promise<{ claimed: ClaimedStep; result: Dispatched }>>();
  const dispatch = (steps: ClaimedStep[]) => {
    for (const claimed of steps) {
      const dispatched = worker.executorFor(claimed.step.tool).dispatch(worker, message, claimed);
      atWork.set(
        claimed.step.index,
        dispatched.then((result) => ({ claimed, result })),
      );
    }
  };
  dispatch(drafted.next.claimed);
  // If a commit fails, the other steps are still awaited. AWS suspends a function that returns while requests are open, and
  // would continue them much later, under a lease that is lost.
  const failures: unknown[] = [];
  while (atWork.size > 0) {
    const { claimed, result } = await Promise.race(atWork.values());
    atWork.delete(claimed.step.index);
    try {
      const settled = await settle(worker, state, claimed, result);
      if (!settled) continue;
      state = settled.state;
      dispatch(settled.next.claimed);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Settles the outcome of a step and claims the next ones; nothing if there is no outcome yet, or the lease is lost. */
async function settle(worker: Worker, state: RunState, claimed: ClaimedStep, result: Dispatched) {
  if (result.kind === 'dispatched') return undefined;
  const { step } = claimed;
  const { tenant, runId } = state.run;
  let why = 'another worker has changed the run';
  if (result.kind === 'lease_lost') why = result.error.message;
  else {
    const reported = await reportOutcome(
      worker,
      { tenant, runId, stepIndex: step.index, leaseVersion: step.leaseVersion, outcome: result },
      (from, draft) => startReadySteps(worker, from, draft),
      { state, claimed },
    );
    if (reported.result === 'accepted') return reported;
  }
  worker.log.warn('a worker lost its lease and stops', { code: 'LEASE_LOST', tenant, runId, step: step.id, why });
  return undefined;
}

/** An ended run is still due: it is not sealed, or the record of its seal was lost. The sealer checks which. */
async function requestSeal(worker: Worker, run: TerminalRun): Promise<void> {
  if (run.sealDueAt === undefined || run.sealDueAt > isoNow(worker.clock)) return;
  // From now on the sweeper sends the outbox entry and counts its attempts.
  const entry = { ...sealEntry(run), attempts: 1, dueAt: later(isoNow(worker.clock), resendDelayMs(1)) };
  if (await worker.runs.clearSealDue(run, entry)) await worker.outbox.dispatch(entry);
}

/** Storing the run fails each time. */
const NEVER_STORED: readonly ErrorCode[] = ['ROW_TOO_LARGE', 'KEY_TOO_LONG'];

/** Ends a run that cannot be processed: a row does not fit, or its workflow or trigger is missing. */
async function endUnprocessable(worker: Worker, message: StepMessage, error: unknown): Promise<void> {
  const final =
    error instanceof ContextMissing || (error instanceof CountersignError && NEVER_STORED.includes(error.code));
  if (!final) throw error;
  const state = error instanceof ContextMissing ? error.state : await loadState(worker, message);
  if (!state) return;
  if (isTerminal(state.run)) return requestSeal(worker, state.run);
  await draftAndCommit(worker, state, async (draft, from) => {
    const inFlight = [...from.steps.values()].filter((step) => step.status === 'running');
    // A worker that has the workflow in its cache may still perform a step; wait until its lease ends.
    if (error instanceof ContextMissing && inFlight.some(({ lease }) => !hasExpired(lease, draft.at))) return undefined;
    const to = inFlight.length > 0 ? 'needs_human' : 'failed_terminal';
    draft.move(to, SYSTEM, recordedError(error.code, error.message));
    return concludeRun(worker.runs, from, draft);
  });
}
