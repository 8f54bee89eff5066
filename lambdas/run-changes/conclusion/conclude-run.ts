import { newOutboxEntry } from '../../outbox/outbox.ts';
import type { RecordedError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import { progressOf, threadOf } from '../../run/progress.ts';
import { isTerminal } from '../../run/run.ts';
import type { By, RunDraft } from '../../run/run-draft.ts';
import type { RunStore } from '../../run/run-store.ts';
import { isFinished, waitsForFlag } from '../../run/step.ts';
import { runnableSteps } from '../../workflow/step-order.ts';
import type { FollowUp } from '../commit-run.ts';
import type { RunState } from '../run-changer.ts';
import { closeOpenSteps } from './close-open-steps.ts';
import { recordRemainingWrites, recordUnknownWrites, undoUnderWay } from './compensation.ts';
import { type NextStatus, nextStatus, overdueStatus, SYSTEM } from './next-status.ts';
import { nextDueAt, PICK_UP_WITHIN_MS, wakeAfter } from './next-wake.ts';
import { settleSlots } from './settle-slots.ts';

/** Runs are gathered for 20 s and then sealed together. */
const SEALED_WITHIN_MS = 45_000;

interface Conditions {
  /** The run must not become `running`. */
  noFreeSlot?: boolean;
  /** Why the run must end now. */
  overdue?: RecordedError;
}

/** Ends each draft: derives the status of the run from its steps, its slots, and when it must be processed again. */
export async function concludeRun(
  runs: Pick<RunStore, 'approval'>,
  state: RunState,
  draft: RunDraft,
  { noFreeSlot = false, overdue }: Conditions = {},
): Promise<FollowUp> {
  if (!isTerminal(draft.run)) {
    const wanted = overdue ? overdueStatus(state, draft, overdue) : nextStatus(state, draft, hasWorkLeft(state, draft));
    const { to, by, error } = noFreeSlot ? withoutSlot(wanted, draft) : wanted;
    if (to === 'rolling_back' && draft.run.status !== to) await beginRollback(runs, draft, by, error);
    if (to === 'canceled') noteCancellation(draft);
    draft.move(to, by, error);
  }
  const workLeft = hasWorkLeft(state, draft);
  extendDeadline(draft);
  settleSlots(state, draft);
  if (isTerminal(draft.run)) {
    await endRun(runs, draft);
    return {};
  }
  showProgress(draft);
  const dueAt = nextDueAt(draft, workLeft);
  draft.note({ dueAt, currentStep: currentStep(state, draft) });
  return wakeAfter(draft, workLeft, dueAt);
}

/** The run keeps its status; it continues as soon as the sweeper finds a free slot for it. */
function withoutSlot(wanted: NextStatus, { before }: RunDraft): NextStatus {
  return wanted.to === 'running' ? { to: before.status, by: SYSTEM } : wanted;
}

/** True if a worker could start or claim a step of the run now. */
function hasWorkLeft(state: RunState, { run, steps }: RunDraft): boolean {
  if ([...steps.values()].some(({ status }) => status === 'ready')) return true;
  if (run.status === 'rolling_back') return !undoUnderWay(steps);
  return runnableSteps(state.workflow, steps).length > 0;
}

/** The run undoes its writes and starts no other steps. */
async function beginRollback(
  runs: Pick<RunStore, 'approval'>,
  draft: RunDraft,
  by: By,
  error?: RecordedError,
): Promise<void> {
  recordUnknownWrites(draft, { undone: true });
  await closeOpenSteps(runs, draft);
  const endsAs = error ? 'failed_terminal' : 'canceled';
  draft.note({
    rollback: { endsAs, actor: by.actor, at: draft.at, ...(error && { error }) },
    stopRequest: undefined,
  });
}

function noteCancellation(draft: RunDraft): void {
  const asked = draft.run.stopRequest ?? draft.run.rollback;
  if (!asked) return;
  const { actor, at } = asked;
  const reason = 'reason' in asked ? asked.reason : undefined;
  draft.note({ cancellation: { actor, at, ...(reason !== undefined && { reason }) } });
}

async function endRun(runs: Pick<RunStore, 'approval'>, draft: RunDraft): Promise<void> {
  const canceled = draft.run.status === 'canceled';
  if (canceled) recordUnknownWrites(draft, { undone: false });
  await closeOpenSteps(runs, draft);
  if (canceled) recordRemainingWrites(draft);
  const { tenant, runId, notify = [] } = draft.run;
  draft.requireSeal(sealDueAt(draft));
  if (notify.length > 0) draft.enqueue(newOutboxEntry({ kind: 'notify_run_end', tenant, runId }, draft.at));
}

/** The time at which the run was due anyway, if the seal has enough time until then: an entry of an index that stays costs nothing. */
function sealDueAt({ before, at }: RunDraft): string {
  const soonest = later(at, SEALED_WITHIN_MS);
  const dueAt = isTerminal(before) ? undefined : before.dueAt;
  return dueAt !== undefined && dueAt > soonest && dueAt < later(at, 2 * PICK_UP_WITHIN_MS) ? dueAt : soonest;
}

/** Only runs of a Slack thread show their progress. */
function showProgress(draft: RunDraft): void {
  const { tenant, runId, seq } = draft.run;
  if (!threadOf(draft.run) || progressOf(draft.events) === undefined) return;
  draft.enqueue(newOutboxEntry({ kind: 'post_progress', tenant, runId, seq: seq + 1 }, draft.at));
}

/** The time that people need to decide, or to switch a flag on, does not count against the deadline. */
function extendDeadline(draft: RunDraft): void {
  const { run } = draft;
  const asked = [...draft.steps.values()].some(({ status }) => status === 'waiting_approval');
  if (!asked && !isTerminal(run) && run.approvalOverdueSince !== undefined) {
    draft.note({ approvalOverdueSince: undefined });
  }
  const waits = run.status === 'waiting_approval' || run.status === 'paused' || waitsForFlag(run, draft.steps);
  if (waits && run.waitingForPeopleSince === undefined) draft.note({ waitingForPeopleSince: draft.at });
  if (!waits && !isTerminal(run) && run.waitingForPeopleSince !== undefined) {
    const waitedMs = Math.max(0, Date.parse(draft.at) - Date.parse(run.waitingForPeopleSince));
    const deadlineAt = later(run.deadlineAt, waitedMs);
    draft.note({ deadlineAt, waitingForPeopleSince: undefined });
    if (waitedMs > 0) draft.record({ type: 'run.deadline_extended', deadlineAt, waitedMs });
  }
}

/** The first step that has started and not finished, otherwise the first that can start. */
function currentStep({ workflow }: RunState, { run, steps }: RunDraft): string | undefined {
  const open = [...steps.values()].filter((step) => !isFinished(step)).sort((a, b) => a.index - b.index)[0];
  const [next] = run.status === 'rolling_back' ? [] : runnableSteps(workflow, steps);
  return open?.id ?? (next === undefined ? undefined : workflow.steps[next]?.id);
}
