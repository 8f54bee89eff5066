import { promised } from '../outbox/outbox.ts';
import { takeSlot } from '../run/caps.ts';
import { type RecordedError, recordedError } from '../run/errors.ts';
import type { ExternalEventContext } from '../run/events/run-events.ts';
import { earlier, later } from '../run/lease.ts';
import { type ActiveStatus, isTerminal, type RunStatus } from '../run/run.ts';
import type { By, RunDraft } from '../run/run-draft.ts';
import type { RunStore } from '../run/run-store.ts';
import { type Awaited, type FailedStep, isFinished, type Step } from '../run/step.ts';
import type { FollowUp } from '../worker/worker.ts';
import { runnableSteps } from '../workflow/step-order.ts';
import { closeOpenSteps } from './close-open-steps.ts';
import {
  hasWritesToUndo,
  mayHaveBeenMade,
  recordKeptWrites,
  recordUnknownWrites,
  undoUnderWay,
} from './compensation.ts';
import type { RunState } from './run-changer.ts';

export const SYSTEM: By = { initiator: 'system', actor: 'worker' };

/** How long a run with work left may wait for its message before the sweeper sends another. */
export const PICK_UP_WITHIN_MS = 30_000;
/** Step Functions keeps an approval's time; if it did not, the sweeper looks this long after it should have expired. */
const RECONCILE_APPROVAL_AFTER_MS = 60_000;

/** As many run as may: it can go on, and does as soon as the sweeper finds room for it. */
function stayPut(wanted: Verdict, { before }: RunDraft): Verdict {
  return wanted.to === 'running' ? { to: before.status, by: SYSTEM } : wanted;
}

type Verdict = { to: RunStatus; by: By; error?: RecordedError };

/** What its steps make of the run: its status, when someone must look again, and its place under the caps. */
export async function concludeRun(
  runs: Pick<RunStore, 'approval'>,
  state: RunState,
  draft: RunDraft,
  { parked = false, overdue }: { parked?: boolean; overdue?: RecordedError } = {},
): Promise<Pick<FollowUp, 'wakeAfterMs'>> {
  if (!isTerminal(draft.run)) {
    const wanted = overdue ? overdueVerdict(state, draft, overdue) : verdict(state, draft);
    const { to, by, error } = parked ? stayPut(wanted, draft) : wanted;
    const turns = to === 'rolling_back' && draft.run.status !== to;
    if (turns) await turnBack(runs, draft, by, error);
    if (to === 'canceled') noteCancellation(draft);
    draft.move(to, by, error);
  }
  const workLeft = hasWorkLeft(state, draft);
  countPeoplesTime(draft);
  settlePlace(state, draft);
  if (isTerminal(draft.run)) {
    if (draft.run.status === 'canceled') recordUnknownWrites(draft);
    await closeOpenSteps(runs, draft);
    if (draft.run.status === 'canceled') recordKeptWrites(draft);
    const { tenant, runId } = draft.run;
    draft.promise(promised({ kind: 'seal_evidence', tenant, runId }, draft.at));
    return {};
  }
  const dueAt = nextLook(draft, workLeft);
  draft.note({ dueAt, currentStep: currentStep(state, draft) });
  return wake(draft, workLeft, dueAt);
}

function noteCancellation(draft: RunDraft): void {
  const asked = draft.run.stopRequest ?? draft.run.rollback;
  if (!asked) return;
  const { actor, at } = asked;
  const reason = 'reason' in asked ? asked.reason : undefined;
  draft.note({ cancellation: { actor, at, ...(reason !== undefined && { reason }) } });
}

/** The first step that is under way, or else the first that can begin. */
function currentStep({ workflow }: RunState, { steps }: RunDraft): string | undefined {
  const open = [...steps.values()].filter((step) => !isFinished(step)).sort((a, b) => a.index - b.index)[0];
  const [next] = runnableSteps(workflow, steps);
  return open?.id ?? (next === undefined ? undefined : workflow.steps[next]?.id);
}

/** The run takes back what it wrote; nothing else of it is begun any more. */
async function turnBack(
  runs: Pick<RunStore, 'approval'>,
  draft: RunDraft,
  by: By,
  error?: RecordedError,
): Promise<void> {
  recordUnknownWrites(draft);
  await closeOpenSteps(runs, draft);
  const endsAs = error ? 'failed_terminal' : 'canceled';
  draft.note({
    rollback: { endsAs, actor: by.actor, at: draft.at, ...(error && { error }) },
    stopRequest: undefined,
  });
}

/** Whether a worker could go on with it right now. */
function hasWorkLeft(state: RunState, { run, steps }: RunDraft): boolean {
  if ([...steps.values()].some(({ status }) => status === 'ready')) return true;
  if (run.status === 'rolling_back') return !undoUnderWay(steps);
  return runnableSteps(state.workflow, steps).length > 0;
}

function verdict(state: RunState, draft: RunDraft): Verdict {
  if (draft.run.status === 'rolling_back') return rollbackVerdict(draft);
  const workLeft = hasWorkLeft(state, draft);
  const by = causeOf(state, draft);
  const steps = [...draft.steps.values()];
  const has = (status: Step['status']) => steps.some((step) => step.status === status);
  const failed = worstFailure(steps);
  const { stopRequest } = draft.run;
  // Nothing ends while a write is in flight: "canceled" and "failed" mean that nothing of the run is sent any more.
  if (has('running')) return { to: 'running', by };
  const failure = failed && failureVerdict(state, failed);
  // A failure that only pauses the run does not keep an operator from ending it, nor one that ends it from a way back.
  const overruled =
    (failure?.to === 'paused' && stopRequest && stopRequest.kind !== 'pause') ||
    (failure?.to === 'failed_terminal' && stopRequest?.kind === 'rollback');
  if (failure && !overruled) return failure;
  // Asked to stop when nothing was left to stop: what is done is done.
  if (draft.steps.size === state.workflow.steps.length && steps.every(({ status }) => status === 'succeeded')) {
    return { to: 'succeeded', by };
  }
  if (stopRequest) {
    const { kind, actor, reason } = stopRequest;
    return { to: STOPPED_AS[kind], by: { initiator: 'user', actor, reason } };
  }
  if (workLeft) return { to: 'running', by };
  if (has('failed_retryable')) return { to: 'failed_retryable', by };
  return waitingVerdict(draft, steps);
}

/** What a commit does to a run is the doing of whoever caused it; of a yes that found no free slot, once there is one. */
function causeOf({ run, steps }: RunState, { cause }: RunDraft): By {
  if (cause) return cause;
  const ready = [...steps.values()].find((step) => step.status === 'ready');
  return (run.status === 'waiting_approval' && ready?.by) || SYSTEM;
}

/** The run waits: for people's decision, or for something from outside. */
function waitingVerdict({ run }: RunDraft, steps: readonly Step[]): Verdict {
  const asking = steps.findLast((step) => step.status === 'waiting_approval');
  if (asking) {
    const { approvalId, tool } = asking;
    const approval = { approvalId, action: tool, requestedBy: run.automation };
    return { to: 'waiting_approval', by: { ...SYSTEM, approval } };
  }
  const waiting = steps.find((step) => step.status === 'waiting_external' && step.awaits.kind === 'signal');
  const externalEvent = waiting?.status === 'waiting_external' ? awaitedEvent(waiting.awaits) : undefined;
  return { to: 'waiting_external', by: { ...SYSTEM, ...(externalEvent && { externalEvent }) } };
}

/** A signal that is waited for; it comes over the API. */
export const awaitedEvent = (awaits: Awaited): ExternalEventContext | undefined =>
  awaits.kind === 'signal'
    ? { type: 'signal', signal: awaits.event, source: 'api', deadlineAt: awaits.until }
    : undefined;

/** An unknown outcome needs a human whatever else went wrong. */
function worstFailure(steps: readonly Step[]): FailedStep | undefined {
  const failed = steps.filter((step) => step.status === 'failed_terminal');
  return failed.find(({ error }) => error.code === 'OUTCOME_UNKNOWN') ?? failed[0];
}

const STOPPED_AS = { cancel: 'canceled', pause: 'paused', rollback: 'rolling_back' } as const;

/** Stays until every write has its word in the compensation log, or somebody calls it off. */
function rollbackVerdict(draft: RunDraft): Verdict {
  const { stopRequest, rollback, compensation } = draft.run;
  const stay: Verdict = { to: 'rolling_back', by: SYSTEM };
  if ([...draft.steps.values()].some(({ status }) => status === 'running')) return stay;
  if (stopRequest) return { to: 'canceled', by: { initiator: 'user', actor: stopRequest.actor } };
  if (undoUnderWay(draft.steps) || hasWritesToUndo(draft)) return stay;
  if (compensation?.some(({ outcome }) => outcome === 'unknown')) {
    const error = recordedError('OUTCOME_UNKNOWN', 'nobody knows whether a write was taken back; look at the target');
    return { to: 'needs_human', by: SYSTEM, error };
  }
  return { to: rollback?.endsAs ?? 'failed_terminal', by: SYSTEM, error: rollback?.error };
}

export const TIMEOUT: By = { initiator: 'timeout', actor: 'worker' };

/** Time is up. What was written is taken back where the workflow says so; what may have been written needs a human. */
function overdueVerdict({ workflow }: RunState, draft: RunDraft, error: RecordedError): Verdict {
  const steps = [...draft.steps.values()];
  const takesBack =
    draft.run.stopRequest?.kind === 'rollback' ||
    workflow.onFailure === 'rollback' ||
    steps.some((step) => !isFinished(step) && workflow.steps[step.index]?.rollback === 'auto');
  if (takesBack && hasWritesToUndo(draft)) return { to: 'rolling_back', by: TIMEOUT, error };
  const open = steps.find(mayHaveBeenMade);
  if (open) return { to: 'needs_human', by: TIMEOUT, error: open.error };
  return { to: error.code === 'RUN_TIMED_OUT' ? 'timed_out' : 'failed_terminal', by: TIMEOUT, error };
}

function failureVerdict({ workflow }: RunState, { error, index, by = SYSTEM }: FailedStep): Verdict {
  if (error.code === 'OUTCOME_UNKNOWN') return { to: 'needs_human', by: SYSTEM, error };
  if (error.code === 'APPROVAL_REJECTED' && workflow.onReject === 'pause') {
    return { to: 'paused', by: { reason: error.code, ...by } };
  }
  if (workflow.onFailure === 'rollback' || workflow.steps[index]?.rollback === 'auto') {
    return { to: 'rolling_back', by, error };
  }
  if (error.code === 'WAIT_TIMED_OUT') return { to: 'timed_out', by, error };
  if (workflow.onFailure === 'pause') return { to: 'paused', by: { reason: error.code, ...by } };
  return { to: 'failed_terminal', by, error };
}

/** The deadline is moved on by the time that people took. */
function countPeoplesTime(draft: RunDraft): void {
  const { run } = draft;
  const asked = [...draft.steps.values()].some(({ status }) => status === 'waiting_approval');
  if (!asked && !isTerminal(run) && run.approvalOverdueSince !== undefined) {
    draft.note({ approvalOverdueSince: undefined });
  }
  const waits = run.status === 'waiting_approval' || run.status === 'paused';
  if (waits && run.waitingForPeopleSince === undefined) draft.note({ waitingForPeopleSince: draft.at });
  if (!waits && !isTerminal(run) && run.waitingForPeopleSince !== undefined) {
    const tookMs = Date.parse(draft.at) - Date.parse(run.waitingForPeopleSince);
    draft.note({ deadlineAt: later(run.deadlineAt, Math.max(0, tookMs)), waitingForPeopleSince: undefined });
  }
}

/**
 * A slot is held exactly while the run is `running`: taken and returned by the commits that begin and end it. The tenant's
 * cap counts all its runs, a workflow's the runs of that workflow.
 */
function settlePlace({ settings, workflow }: RunState, draft: RunDraft): void {
  const { run, before } = draft;
  const { counterShards, caps } = settings;
  const ofTenant = caps.maxConcurrency;
  const ofWorkflow = workflow.caps?.maxConcurrency;
  if (run.status === 'running' && before.status !== 'running') {
    if (ofTenant !== undefined) {
      const taken = takeSlot(run, ofTenant, counterShards);
      draft.note({ slot: taken.slot }).cap(taken);
    }
    if (ofWorkflow !== undefined) {
      const taken = takeSlot(run, ofWorkflow, counterShards, workflow.name);
      draft.note({ workflowSlot: taken.slot }).cap(taken);
    }
  }
  if (run.status !== 'running' && before.slot !== undefined) {
    draft.note({ slot: undefined }).cap({ kind: 'return_slot', slot: before.slot });
  }
  if (run.status !== 'running' && before.workflowSlot !== undefined) {
    draft.note({ workflowSlot: undefined }).cap({ kind: 'return_slot', slot: before.workflowSlot });
  }
  if (isTerminal(run) && run.concurrencyKey !== undefined) {
    // Over in the very commit that would have taken the key: then it is not taken at all.
    if (before.concurrencyKey === undefined) draft.waiveCap('take_key');
    else draft.cap({ kind: 'release_key', key: run.concurrencyKey, runId: run.runId });
  }
}

function nextLook(draft: RunDraft, workLeft: boolean): string | undefined {
  const { run } = draft;
  const steps = [...draft.steps.values()];
  const asked = steps.filter(({ status }) => status === 'waiting_approval');
  if (run.status === 'paused') return asked.flatMap((step) => lookAt(step) ?? []).sort()[0];
  const looks = steps.flatMap((step) => lookAt(step) ?? []);
  if (workLeft) looks.push(later(draft.at, PICK_UP_WITHIN_MS));
  // People's time does not count, and what was begun to be taken back is taken back however long it takes.
  if (run.status !== 'waiting_approval' && run.status !== 'rolling_back') looks.push(run.deadlineAt);
  return looks.reduce(earlier);
}

function lookAt(step: Step): string | undefined {
  switch (step.status) {
    case 'running':
      return step.lease.expiresAt;
    case 'failed_retryable':
      return step.retryAt;
    case 'waiting_external':
      return step.awaits.until;
    case 'ready':
      return later(step.updatedAt, PICK_UP_WITHIN_MS);
    case 'waiting_approval':
      return later(step.expiresAt, RECONCILE_APPROVAL_AFTER_MS);
    default:
      return undefined;
  }
}

/** A message for what is due soon or now; what is in flight needs none, and what is due late is the sweeper's. */
function wake(draft: RunDraft, workLeft: boolean, dueAt: string | undefined): Pick<FollowUp, 'wakeAfterMs'> {
  const inFlight = [...draft.steps.values()].some(({ status }) => status === 'running');
  const status = draft.run.status as ActiveStatus;
  if (status === 'running' || (status === 'rolling_back' && workLeft))
    return workLeft && !inFlight ? { wakeAfterMs: 0 } : {};
  const timed = status === 'failed_retryable' || status === 'waiting_external' || status === 'rolling_back';
  return timed && dueAt !== undefined ? { wakeAfterMs: Math.max(0, Date.parse(dueAt) - Date.parse(draft.at)) } : {};
}
