import { stricter } from '../policy/approval-requirement.ts';
import { groundsOf } from '../policy/policy.ts';
import { readTime } from '../proposal/attempt-time.ts';
import type { DecidedCall } from '../proposal/propose-call.ts';
import { callableFrom, readTarget } from '../proposal/read-target.ts';
import { runValues } from '../proposal/run-values.ts';
import type { Approval } from '../run/approval.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Governed, StepFacts } from '../run/step.ts';
import { readLater } from '../run-changes/read-later.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { modeIn } from '../workflow/requested-mode.ts';
import { type PhasePreviewer, restOfPhase } from './phase-writes.ts';
import { newApprovalId, requestApproval } from './request-approval.ts';

export interface WriteRequester extends PhasePreviewer {
  random: () => number;
}

interface WriteToApprove {
  step: StepFacts;
  decided: DecidedCall;
  governed: Governed;
  gate: Pick<Approval, 'asks' | 'requirement'>;
}

/** Requests an approval for a write. With `onDrift: refuse`, the current values must be read first. */
export async function requestWriteApproval(
  requester: WriteRequester,
  state: RunState,
  draft: RunDraft,
  { step, decided, governed, gate }: WriteToApprove,
): Promise<void> {
  const { request, decision, action, input, proposal, actionHash } = decided;
  const found = await readTarget(requester, draft.run.tenant, decided, readTime(requester, draft.run, step.index));
  // An undo expects the values that its write left, not the values that people see.
  const guarded = state.workflow.onDrift === 'refuse' && step.undoes === undefined;
  if (guarded && 'why' in found) {
    readLater(requester, state, draft, { ...step, governed, input }, found, {
      what: `the values that ${step.tool} would change`,
      finally: 'nobody was asked, because the workflow says onDrift: refuse',
    });
    return;
  }
  const before = 'why' in found ? undefined : found.before;
  const notBefore = 'why' in found ? callableFrom(requester, found) : undefined;
  const message = await messageOf(requester, state, draft, step);
  const perPhase = modeIn(state.workflow, action.environment) === 'per_phase' && step.undoes === undefined;
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
