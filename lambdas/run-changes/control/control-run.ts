import type { AgentHints } from '../../agents/agent-registry.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { later, leaseTimesOf } from '../../run/lease.ts';
import type { StopRequest } from '../../run/run.ts';
import type { By, RunDraft } from '../../run/run-draft.ts';
import { type FailedStep, factsOf, lostAgentIn, type RetryableStep, withoutApproval } from '../../run/step.ts';
import { changeRun } from '../change-run.ts';
import type { FollowUp } from '../commit-run.ts';
import { concludeRun } from '../conclusion/conclude-run.ts';
import { recordResume } from '../recover-run.ts';
import type { RunChanger, RunState } from '../run-changer.ts';
import { cancelSession } from '../session/cancel-session.ts';
import { settleReceipt, succeed } from '../step-endings.ts';
import { ownReceipt } from '../step-receipt.ts';

/** A command of a person. */
export type Command =
  | { kind: 'cancel'; reason?: string }
  | { kind: 'pause'; reason?: string }
  | { kind: 'rollback'; reason?: string }
  | { kind: 'resume' }
  | { kind: 'retry'; step?: string }
  | { kind: 'cancel_session'; step?: string; reason?: string }
  /** `id`: the sender's id of this event. */
  | { kind: 'signal'; event: string; payload: unknown; id?: string };

/** The run has another last commit than the sender of a command expected. */
export class RunChanged extends CountersignError {
  constructor() {
    super('CONFLICT', 'the run has changed meanwhile; try again');
  }
}

/**
 * Executes a command in one commit. It performs no step: a worker continues the run. With `expectedSeq`, the commit is made
 * directly after this one, or not at all.
 */
export async function controlRun(
  changer: RunChanger & { hints?: AgentHints },
  target: { tenant: string; runId: string },
  command: Command,
  actor: string,
  { expectedSeq }: { expectedSeq?: number } = {},
): Promise<RunState> {
  const changed = await changeRun(changer, target, (state, draft) => {
    if (expectedSeq !== undefined && state.run.seq !== expectedSeq) throw new RunChanged();
    return execute(changer, state, draft, command, actor);
  });
  if (command.kind === 'cancel' || command.kind === 'rollback') await hintAgents(changer, changed);
  return changed;
}

async function execute(
  changer: RunChanger,
  state: RunState,
  draft: RunDraft,
  command: Command,
  actor: string,
): Promise<FollowUp | undefined> {
  const by: By = { initiator: 'user', actor };
  switch (command.kind) {
    case 'cancel':
    case 'pause':
    case 'rollback':
      if (!requestStop(state, draft, command.kind, { ...by, reason: command.reason })) return undefined;
      break;
    case 'resume':
      assertResumable(state);
      resume(draft, by);
      break;
    case 'retry':
      await retryFailed(changer, state, draft, command.step, actor);
      if (state.run.status === 'paused') resume(draft, by);
      break;
    case 'cancel_session':
      cancelSession(state, draft, command, by);
      break;
    case 'signal':
      applySignal(state, draft, command, by);
      break;
  }
  return concludeRun(changer.runs, state, draft);
}

/** A paused run continues where it stopped. */
function resume(draft: RunDraft, by: By): void {
  draft.note({ stopRequest: undefined }).move('running', by);
  recordResume(draft, { because: 'operator', actor: by.actor });
}

/** The same request again changes nothing; a cancel overrides a pause. */
function requestStop({ run }: RunState, draft: RunDraft, kind: StopRequest['kind'], by: By): boolean {
  if (run.stopRequest?.kind === kind || run.stopRequest?.kind === 'cancel') return false;
  if (kind === 'pause' && run.status === 'paused') return false;
  if (kind === 'pause' && run.status === 'queued') {
    throw new CountersignError(
      'RUN_INVALID_TRANSITION',
      'the run has not started; cancel it, or pause it when it runs',
    );
  }
  if (run.status === 'rolling_back' && kind !== 'cancel') {
    throw new CountersignError('RUN_INVALID_TRANSITION', 'the run is rolling back; it can only be canceled');
  }
  const { actor, reason } = by;
  if (kind === 'rollback') draft.addMaker(actor);
  draft
    .note({ stopRequest: { kind, actor, reason, at: draft.at } })
    .record({ type: 'run.stop_requested', kind, ...by });
  return true;
}

/** Retries failed steps at once: those that wait for their backoff and, in a paused run, those that have failed permanently. */
async function retryFailed(
  changer: RunChanger,
  state: RunState,
  draft: RunDraft,
  stepId: string | undefined,
  actor: string,
): Promise<void> {
  const paused = state.run.status === 'paused';
  const failed = [...state.steps.values()].filter(
    (step) =>
      // A step that failed after its write was made is not retried: the write is in place.
      (step.status === 'failed_retryable' || (paused && step.status === 'failed_terminal' && !step.wrote)) &&
      (stepId === undefined || step.id === stepId),
  );
  if (failed.length === 0) {
    assertNoOpenApproval(state, stepId);
    const what = stepId === undefined ? 'no step of this run can' : `step ${stepId} of this run cannot`;
    throw new CountersignError(
      'RUN_INVALID_TRANSITION',
      `${what} be retried now; run "countersign runs show" to see its steps`,
    );
  }
  for (const step of failed) {
    if (step.status !== 'failed_retryable' && step.status !== 'failed_terminal') continue;
    const { input, receiptKey, error } = step;
    const lost = error.code === 'AGENT_LOST' && (await settleLost(changer, draft, step));
    draft
      .put({
        ...factsOf(step, draft.at),
        // A retry by a person starts with new attempts.
        attempt: 0,
        unassigned: undefined,
        ...lostAgentIn(step),
        ...(lost && { sent: true }),
        // A person who only shortens the backoff is no maker. After a final failure, people are asked again, and the
        // person who retries is a maker.
        ...(step.status === 'failed_terminal' && {
          ...(step.governed && { governed: withoutApproval(step.governed, step.governed) }),
          retriedBy: [...new Set([...(step.retriedBy ?? []), actor])],
          // Its session was started and has ended: without another key, the step would reuse that start and succeed.
          ...(step.session && { earlierCalls: (step.earlierCalls ?? 0) + 1 }),
        }),
        input,
        receiptKey,
        status: 'failed_retryable',
        retryAt: await soonestRetry(changer, draft, step),
        error,
      })
      .record({ type: 'step.retry_requested', step: step.id, index: step.index, actor });
  }
}

/** A person decides that a command whose agent was lost may run again: sending it is a retry, with the gate of one. */
async function settleLost(changer: RunChanger, draft: RunDraft, step: RetryableStep | FailedStep): Promise<boolean> {
  const own = await ownReceipt(changer, draft, step);
  if (own?.outcome !== 'unknown') return false;
  settleReceipt(draft, { ...own, outcome: 'failed', settledAt: draft.at });
  return true;
}

/** Now, but not before the quarantine of a write of unknown outcome ends. */
async function soonestRetry(changer: RunChanger, draft: RunDraft, step: RetryableStep | FailedStep): Promise<string> {
  const own = await ownReceipt(changer, draft, step);
  if (own?.outcome !== 'unknown' && own?.outcome !== 'intent') return draft.at;
  const quarantineEnds = later(own.intentAt, leaseTimesOf(step.tool).quarantineMs);
  return quarantineEnds > draft.at ? quarantineEnds : draft.at;
}

function applySignal(
  state: RunState,
  draft: RunDraft,
  { event, payload, id }: Extract<Command, { kind: 'signal' }>,
  by: By,
): void {
  const waiting = [...state.steps.values()].find(
    (step) => step.status === 'waiting_external' && step.awaits.kind === 'signal' && step.awaits.event === event,
  );
  if (!waiting) {
    throw new CountersignError('RUN_INVALID_TRANSITION', `no step of this run waits for the signal "${event}"`);
  }
  const { actor } = by;
  const { runId, seq } = state.run;
  const eventId = id ?? `${runId}.${seq + 1}-${waiting.index}`;
  draft.causedBy({ ...by, externalEvent: { type: 'signal', signal: event, source: 'api', id: eventId } }).record({
    type: 'step.signaled',
    step: waiting.id,
    index: waiting.index,
    signal: event,
    source: 'api',
    eventId,
    actor,
    payloadHash: hashOf(payload ?? null),
  });
  draft.addMaker(actor);
  succeed(draft, waiting, { output: payload ?? null });
}

/** A run that a failed step has paused cannot be resumed: it would pause again. */
function assertResumable({ run, steps }: RunState): void {
  if (run.status !== 'paused') {
    assertNoOpenApproval({ steps });
    const message = `only a paused run can be resumed; this one is ${run.status}`;
    throw new CountersignError('RUN_INVALID_TRANSITION', message);
  }
  const failed = [...steps.values()].find((step) => step.status === 'failed_terminal');
  if (!failed) return;
  const message = `${failed.id} has failed (${failed.error.code}); retry it, or roll back or cancel the run`;
  throw new CountersignError('RUN_RESUME_FAILED', message);
}

/** A step that waits for an approval continues by a decision, not by a command. */
function assertNoOpenApproval({ steps }: Pick<RunState, 'steps'>, stepId?: string): void {
  const waiting = [...steps.values()].find(
    (step) => step.status === 'waiting_approval' && (stepId === undefined || step.id === stepId),
  );
  if (waiting?.status !== 'waiting_approval') return;
  const message = `${waiting.id} waits for an approval; decide on ${waiting.approvalId} first (countersign approvals show)`;
  throw new CountersignError('APPROVAL_REQUIRED', message);
}

/** Lets the agents that run commands of this run sync now: they learn that it is being stopped. */
async function hintAgents(
  { hints, log }: RunChanger & { hints?: AgentHints },
  { run: { tenant, runId }, steps }: RunState,
): Promise<void> {
  const agents = [...steps.values()].flatMap((step) =>
    step.status === 'running' && step.assigned ? [step.assigned.agentId] : [],
  );
  for (const agentId of new Set(agents)) {
    try {
      await hints?.syncNow(tenant, agentId);
    } catch (error) {
      // It learns it with its next sync.
      log.warn('an agent could not be asked to sync', { tenant, runId, agentId, error });
    }
  }
}
