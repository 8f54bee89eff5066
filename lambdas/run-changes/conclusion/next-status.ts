import { isUnknownOutcome, type RecordedError, recordedError } from '../../run/errors.ts';
import type { ExternalEventContext } from '../../run/events/run-events.ts';
import type { Compensation } from '../../run/events/write-events.ts';
import type { RunStatus } from '../../run/run.ts';
import type { By, RunDraft } from '../../run/run-draft.ts';
import { type Awaited, type FailedStep, isFinished, type Step } from '../../run/step.ts';
import type { RunState } from '../run-changer.ts';
import { hasWritesToUndo, mayHaveBeenMade, undoUnderWay } from './compensation.ts';

export const SYSTEM: By = { initiator: 'system', actor: 'worker' };
export const TIMEOUT: By = { initiator: 'timeout', actor: 'worker' };
const STOPPED_AS = { cancel: 'canceled', pause: 'paused', rollback: 'rolling_back' } as const;

export type NextStatus = { to: RunStatus; by: By; error?: RecordedError };

/** The status of a run follows from its steps and from requests to stop it. */
export function nextStatus(state: RunState, draft: RunDraft, workLeft: boolean): NextStatus {
  if (draft.run.status === 'rolling_back') return rollbackStatus(draft);
  const by = causeOf(state, draft);
  const steps = [...draft.steps.values()];
  const has = (status: Step['status']) => steps.some((step) => step.status === status);
  const { stopRequest } = draft.run;
  // A command that was stopped because of the request has not failed.
  const failed = worstFailure(stopRequest ? steps.filter((step) => !isStopped(step)) : steps);
  // A run does not end while a write is in flight: `canceled` and `failed` mean that it sends nothing more.
  if (has('running')) return { to: 'running', by };
  const failure = failed && failureStatus(state, failed);
  // An operator may end a run that a failure only pauses, and roll back a run that a failure would end.
  const overruled =
    (failure?.to === 'paused' && stopRequest && stopRequest.kind !== 'pause') ||
    (failure?.to === 'failed_terminal' && stopRequest?.kind === 'rollback');
  if (failure && !overruled) return failure;
  // The request to stop came after the last step had succeeded.
  if (draft.steps.size === state.workflow.steps.length && steps.every(({ status }) => status === 'succeeded')) {
    return { to: 'succeeded', by };
  }
  if (stopRequest) {
    const { kind, actor, reason } = stopRequest;
    return { to: STOPPED_AS[kind], by: { initiator: 'user', actor, reason } };
  }
  if (workLeft) return { to: 'running', by };
  if (has('failed_retryable')) return { to: 'failed_retryable', by };
  return waitingStatus(draft, steps);
}

/** Who changes the status: the cause of the commit, or the approver of a step that waited for a free slot. */
function causeOf({ run, steps }: RunState, { cause }: RunDraft): By {
  if (cause) return cause;
  const ready = [...steps.values()].find((step) => step.status === 'ready');
  return (run.status === 'waiting_approval' && ready?.by) || SYSTEM;
}

/** The run waits for an approval, a signal or a point in time. */
function waitingStatus({ run }: RunDraft, steps: readonly Step[]): NextStatus {
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

export const awaitedEvent = (awaits: Awaited): ExternalEventContext | undefined =>
  awaits.kind === 'signal'
    ? { type: 'signal', signal: awaits.event, source: 'api', deadlineAt: awaits.until }
    : undefined;

const isStopped = (step: Step): boolean => step.status === 'failed_terminal' && step.error.code === 'COMMAND_CANCELED';

/** An unknown outcome has priority, because it needs a human. */
function worstFailure(steps: readonly Step[]): FailedStep | undefined {
  const failed = steps.filter((step) => step.status === 'failed_terminal');
  return failed.find(({ error }) => isUnknownOutcome(error.code)) ?? failed[0];
}

function failureStatus({ workflow }: RunState, failed: FailedStep): NextStatus {
  const { error, index, by = SYSTEM } = failed;
  if (error.code === 'OUTCOME_UNKNOWN') return { to: 'needs_human', by: SYSTEM, error };
  if (rollsBackItself(workflow, failed)) return { to: 'rolling_back', by, error };
  // The agent no longer runs the command, so an operator may decide to assign it again.
  if (error.code === 'AGENT_LOST' && workflow.onFailure !== 'pause') return { to: 'needs_human', by, error };
  if (error.code === 'APPROVAL_REJECTED' && workflow.onReject === 'pause') {
    return { to: 'paused', by: { reason: error.code, ...by } };
  }
  if (workflow.onFailure === 'rollback' || workflow.steps[index]?.rollback === 'auto') {
    return { to: 'rolling_back', by, error };
  }
  if (error.code === 'SESSION_NEEDS_HUMAN') return { to: 'needs_human', by, error };
  if (error.code === 'WAIT_TIMED_OUT' || error.code === 'SESSION_TIMED_OUT') return { to: 'timed_out', by, error };
  if (workflow.onFailure === 'pause') return { to: 'paused', by: { reason: error.code, ...by } };
  return { to: 'failed_terminal', by, error };
}

/**
 * A command that says how to undo it is undone when it fails or is lost, also if the workflow does not ask for a rollback
 * (source 001, 7.3 and 10). Only `onFailure: pause` leaves that to people.
 */
const rollsBackItself = ({ onFailure }: RunState['workflow'], { mayHaveWritten }: FailedStep): boolean =>
  mayHaveWritten === true && onFailure !== 'pause';

/** The run stays in `rolling_back` until each write has an entry in the compensation log, or an operator cancels it. */
function rollbackStatus(draft: RunDraft): NextStatus {
  const { stopRequest, rollback, compensation } = draft.run;
  const stay: NextStatus = { to: 'rolling_back', by: SYSTEM };
  if ([...draft.steps.values()].some(({ status }) => status === 'running')) return stay;
  if (stopRequest) return { to: 'canceled', by: { initiator: 'user', actor: stopRequest.actor } };
  if (undoUnderWay(draft.steps) || hasWritesToUndo(draft)) return stay;
  if (compensation?.some(({ outcome }) => outcome === 'unknown')) {
    const error = recordedError('OUTCOME_UNKNOWN', 'it is unknown whether a write was undone; check the target');
    return { to: 'needs_human', by: SYSTEM, error };
  }
  const incomplete = draft.run.rollbackOf && notUndone(compensation ?? []);
  if (incomplete) return { to: 'failed_terminal', by: SYSTEM, error: incomplete };
  return { to: rollback?.endsAs ?? 'failed_terminal', by: SYSTEM, error: rollback?.error };
}

/** A run that rolls another one back succeeds only if every write was undone. */
function notUndone(compensation: readonly Compensation[]): RecordedError | undefined {
  const left = compensation.filter(({ outcome }) => outcome !== 'reversed');
  if (left.length === 0) return undefined;
  const each = left.map(({ step, outcome }) => `${step} (${outcome})`).join(', ');
  return recordedError('ROLLBACK_INCOMPLETE', `${left.length} of ${compensation.length} writes remain: ${each}`);
}

/** Ends a run whose time is up. It rolls back where the workflow says so; a write of unknown outcome needs a human. */
export function overdueStatus({ workflow }: RunState, draft: RunDraft, error: RecordedError): NextStatus {
  const steps = [...draft.steps.values()];
  const rollsBack =
    draft.run.stopRequest?.kind === 'rollback' ||
    workflow.onFailure === 'rollback' ||
    steps.some((step) => step.status === 'failed_terminal' && rollsBackItself(workflow, step)) ||
    steps.some((step) => !isFinished(step) && workflow.steps[step.index]?.rollback === 'auto');
  if (rollsBack && hasWritesToUndo(draft)) return { to: 'rolling_back', by: TIMEOUT, error };
  const open = steps.find(mayHaveBeenMade);
  if (open) return { to: 'needs_human', by: TIMEOUT, error: open.error };
  return { to: error.code === 'RUN_TIMED_OUT' ? 'timed_out' : 'failed_terminal', by: TIMEOUT, error };
}
