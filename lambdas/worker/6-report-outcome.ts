import type { Assignment } from '../agents/assignment.ts';
import { isTerminal } from '../run/run.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { RunningStep, Step } from '../run/step.ts';
import { draftAndCommit, type FollowUp, loadState } from '../run-changes/commit-run.ts';
import { recordEndedUndos } from '../run-changes/conclusion/compensation.ts';
import { concludeRun } from '../run-changes/conclusion/conclude-run.ts';
import type { RunChanger, RunState } from '../run-changes/run-changer.ts';
import { ownReceipt } from '../run-changes/step-receipt.ts';
import type { StepOutcome } from './5-executor.ts';
import { settleOutcome } from './7-settle-outcome.ts';
import type { ClaimedStep, Worker } from './worker.ts';

/** Others may change the run while a step is performed: its outcome is settled again on the newer state. */
const TRIES_MAX = 8;

export type Reporter = RunChanger & Pick<Worker, 'random' | 'executorFor' | 'ownUrl'>;

export interface OutcomeReport {
  tenant: string;
  runId: string;
  stepIndex: number;
  /** The lease under which the step was performed. */
  leaseVersion: number;
  /** The outcome, or how it follows from the claimed step. */
  outcome: StepOutcome | ((claimed: ClaimedStep) => StepOutcome);
  /** The assignment of this claim, as it was read, and how it ends. */
  assignment?: { read: Assignment; ending: Partial<Assignment> };
}

export type Reported<Next extends FollowUp> =
  | { result: 'accepted'; state: RunState; next: Next }
  /** This lease already has an outcome. Nothing changes. */
  | { result: 'duplicate' }
  /** The step is no longer performed under this lease, or its run has ended. Nothing changes. */
  | { result: 'lease_lost' };

/**
 * Reports the outcome of a step under its lease: settles the step and its receipt in one commit. The worker reports what
 * it performed with the state it already has, and starts the next steps in the same commit (`startNext`). An executor
 * outside the worker reports without them; a message then wakes a worker that continues the run.
 */
export async function reportOutcome<Next extends FollowUp = FollowUp>(
  reporter: Reporter,
  report: OutcomeReport,
  startNext?: (state: RunState, draft: RunDraft) => Promise<Next>,
  known?: { state: RunState; claimed: ClaimedStep },
): Promise<Reported<Next>> {
  const { stepIndex, leaseVersion, outcome, assignment } = report;
  let state = known?.state ?? (await loadState(reporter, report));
  for (let tries = 1; state && tries <= TRIES_MAX; tries += 1) {
    const now = state.steps.get(stepIndex);
    const ours = now?.status === 'running' && now.leaseVersion === leaseVersion && !isTaken(now, outcome);
    if (!ours || isTerminal(state.run)) return { result: isSettled(now, leaseVersion) ? 'duplicate' : 'lease_lost' };
    const drafted = await draftAndCommit(reporter, state, async (draft, from) => {
      const claimed = known?.claimed ?? (await readClaimed(reporter, draft, now));
      if (!claimed) return undefined;
      if (assignment) draft.changeAssignment(assignment.read, { ...assignment.ending, endedAt: draft.at });
      const settled = typeof outcome === 'function' ? outcome(claimed) : outcome;
      // A worker has performed the step itself. An executor outside may still renew a lease that it has lost.
      if (known && !reporter.executorFor(now.tool).isRenewed) draft.giveUpLease(stepIndex);
      await settleOutcome(reporter, from, draft, claimed, settled);
      return startNext ? startNext(from, draft) : (wakeWorker(reporter, from, draft) as Promise<Next>);
    });
    if (drafted.outcome === 'committed') return { result: 'accepted', state: drafted.state, next: drafted.next };
    state = await loadState(reporter, report);
  }
  return { result: 'lease_lost' };
}

/**
 * The worker that could not offer an assignment may be wrong: its offer was stored, the response was lost, and an agent has
 * acknowledged it since. Or writes were on again when it was acknowledged. Then only the agent knows the outcome.
 */
const isTaken = ({ assigned }: RunningStep, outcome: OutcomeReport['outcome']): boolean =>
  assigned !== undefined &&
  'kind' in outcome &&
  ((outcome.kind === 'unassigned' && outcome.because === 'no_agent') ||
    (outcome.kind === 'refused' && outcome.heldBy !== undefined));

async function readClaimed(reporter: Reporter, draft: RunDraft, step: RunningStep): Promise<ClaimedStep | undefined> {
  const receipt = await ownReceipt(reporter, draft, step);
  return receipt?.outcome === 'intent' ? { step, receipt } : undefined;
}

/** True if this lease already has an outcome. A step that was stopped keeps its lease version without an outcome. */
function isSettled(step: Step | undefined, leaseVersion: number): boolean {
  if (!step || step.leaseVersion !== leaseVersion || step.status === 'running' || step.status === 'canceled') {
    return false;
  }
  return !(step.status === 'failed_retryable' && step.stopped);
}

async function wakeWorker({ runs }: Reporter, state: RunState, draft: RunDraft): Promise<FollowUp> {
  // The run may end with this undo, before a worker would log it.
  if (draft.run.status === 'rolling_back') recordEndedUndos(draft);
  const next = await concludeRun(runs, state, draft);
  return isTerminal(draft.run) ? next : { wakeAfterMs: 0, ...next };
}
