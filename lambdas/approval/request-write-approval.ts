import { stricter } from '../policy/approval-requirement.ts';
import { groundsOf } from '../policy/policy.ts';
import { AttemptTime } from '../proposal/attempt-time.ts';
import type { JudgedCall } from '../proposal/propose-call.ts';
import { callableFrom, readTarget, type Unreadable } from '../proposal/read-target.ts';
import { runValues } from '../proposal/run-values.ts';
import type { Approval } from '../run/approval.ts';
import { recordedError } from '../run/errors.ts';
import { DEFAULT_ATTEMPTS } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Governed, StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, scheduleRetry } from '../run-changes/step-endings.ts';
import { type PhaseForeseer, restOfPhase } from './phase-writes.ts';
import { newApprovalId, requestApproval } from './request-approval.ts';

export interface WriteRequester extends PhaseForeseer {
  random: () => number;
}

interface WriteToApprove {
  step: StepFacts;
  judged: JudgedCall;
  governed: Governed;
  gate: Pick<Approval, 'asks' | 'requirement'>;
}

/** Requests an approval for a write. With `onDrift: refuse`, the current values must be read first. */
export async function requestWriteApproval(
  requester: WriteRequester,
  state: RunState,
  draft: RunDraft,
  { step, judged, governed, gate }: WriteToApprove,
): Promise<void> {
  const { request, decision, action, input, proposal, actionHash } = judged;
  const found = await readTarget(requester, draft.run.tenant, judged, new AttemptTime(requester));
  // An undo expects the values that its write left, not the values that people see.
  const guarded = state.workflow.onDrift === 'refuse' && step.undoes === undefined;
  if (guarded && 'why' in found) {
    readLater(requester, state, draft, { ...step, governed, input }, found);
    return;
  }
  const before = 'why' in found ? undefined : found.before;
  const notBefore = 'why' in found ? callableFrom(requester, found) : undefined;
  const message = await messageOf(requester, state, draft, step);
  const perPhase = state.workflow.validation?.mode === 'per_phase' && step.undoes === undefined;
  const rest = perPhase ? await restOfPhase(requester, state, draft, step) : undefined;
  const actions = [action, ...(rest?.writes ?? []).map((write) => write.action)];
  // The approval covers one request, so the next one is no retry.
  const { sent: _covered, ...facts } = step;
  requestApproval(state, draft, {
    step: {
      ...facts,
      // An approved write starts with new attempts, unless people approve one more attempt.
      attempt: gate.asks === 'retry' ? step.attempt : 0,
      governed: { request, decision, approvalId: newApprovalId(draft, step) },
      ...(guarded && before && { expects: before }),
      ...(notBefore !== undefined && { notBefore }),
    },
    asks: gate.asks,
    actionHash,
    requirement: [gate.requirement, ...(rest?.requirements ?? [])].reduce(stricter),
    grounds: groundsOf(decision),
    makers: [...new Set(actions.flatMap(({ makers }) => makers))],
    environment: requester.environment,
    write: {
      input,
      action,
      before,
      after: proposal.after,
      ...('why' in found ? { unread: found.why } : found.names && { names: found.names }),
    },
    ...(message !== undefined && { message }),
    ...(rest && { rest }),
  });
}

/** The `message` of the step, for approvers to read beside the fields. */
async function messageOf(
  requester: WriteRequester,
  state: RunState,
  draft: RunDraft,
  step: StepFacts,
): Promise<string | undefined> {
  const definition = step.undoes === undefined ? state.workflow.steps[step.index] : undefined;
  if (definition?.message === undefined) return undefined;
  const message = await runValues(requester, state, draft, definition).render(definition.message);
  return typeof message === 'string' ? message : JSON.stringify(message);
}

function readLater(
  requester: WriteRequester,
  { workflow }: RunState,
  draft: RunDraft,
  step: StepFacts & { input: unknown },
  unreadable: Unreadable,
): void {
  const { why, retryable } = unreadable;
  const { retry } = workflow.steps[step.index] ?? {};
  const tried = { ...step, attempt: step.attempt + 1 };
  const message = `the values that ${step.tool} would change could not be read: ${why}`;
  if (!retryable || tried.attempt >= (retry?.attempts ?? DEFAULT_ATTEMPTS)) {
    const final = `${message}; nobody was asked, because the workflow says onDrift: refuse`;
    fail(draft, tried, recordedError('TARGET_REFUSED', final), { input: step.input });
    return;
  }
  const delaysMs = retry?.backoffSeconds?.map((seconds) => seconds * 1000);
  const notBefore = callableFrom(requester, unreadable);
  scheduleRetry(requester, draft, tried, recordedError('TARGET_REFUSED', message), { notBefore, delaysMs });
}
