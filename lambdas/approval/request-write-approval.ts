import type { Operation, Proposal } from '../connectors/connector.ts';
import { isoNow } from '../entry/ports.ts';
import { stricter } from '../policy/approval-requirement.ts';
import { groundsOf } from '../policy/policy.ts';
import { expressionScope } from '../proposal/expression-scope.ts';
import { look, type Unreadable } from '../proposal/read-target.ts';
import type { Approval } from '../run/approval.ts';
import { recordedError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import { DEFAULT_ATTEMPTS } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Governed, StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, scheduleRetry } from '../run-changes/step-endings.ts';
import type { Worker } from '../worker/worker.ts';
import { render } from '../workflow/expressions/expressions.ts';
import { restOfPhase } from './phase-writes.ts';
import { newApprovalId, requestApproval } from './request-approval.ts';

interface Stopping {
  step: StepFacts;
  input: unknown;
  operation: Operation;
  proposal: Proposal;
  /** What policy was asked and said. */
  governed: Governed;
  gate: Pick<Approval, 'asks' | 'requirement'>;
  actionHash: string;
}

/** People are asked; but where a target that has changed is not to be written to, not before it is known how it is. */
export async function requestWriteApproval(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, input, operation, proposal, governed, gate, actionHash }: Stopping,
): Promise<void> {
  const { request, decision } = governed;
  const { action } = request;
  const seen = await look(worker, draft.run.tenant, operation, input);
  // An undo expects what its write left there, whatever people are shown.
  const guarded = state.workflow.onDrift === 'refuse' && step.undoes === undefined;
  if (guarded && 'error' in seen) {
    lookLater(worker, state, draft, { ...step, governed, input }, seen);
    return;
  }
  const before = 'error' in seen ? undefined : seen.before;
  const message = await messageOf(worker, state, draft, step);
  const perPhase = state.workflow.validation?.mode === 'per_phase' && step.undoes === undefined;
  const rest = perPhase ? await restOfPhase(worker, state, draft, step) : undefined;
  requestApproval(state, draft, {
    step: {
      ...step,
      // What people agree to is a new go: the attempts that led here do not count against it, unless it is one more of them.
      attempt: gate.asks === 'retry' ? step.attempt : 0,
      governed: { request, decision, approvalId: newApprovalId(draft, step) },
      ...(guarded && before && { expects: before }),
    },
    asks: gate.asks,
    actionHash,
    requirement: [gate.requirement, ...(rest?.requirements ?? [])].reduce(stricter),
    grounds: groundsOf(decision),
    makers: [
      ...new Set([action, ...(rest?.writes ?? []).map((write) => write.action)].flatMap(({ makers }) => makers)),
    ],
    environment: worker.environment,
    write: { input, action, before, after: proposal.after },
    ...(message !== undefined && { message }),
    ...(rest && { rest }),
  });
}

/** What the workflow wants approvers to read beside the fields themselves. */
async function messageOf(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: StepFacts,
): Promise<string | undefined> {
  const template = step.undoes === undefined ? state.workflow.steps[step.index]?.message : undefined;
  if (template === undefined) return undefined;
  const message = await render(expressionScope(worker, state, draft), template);
  return typeof message === 'string' ? message : JSON.stringify(message);
}

function lookLater(
  worker: Worker,
  { workflow }: RunState,
  draft: RunDraft,
  step: StepFacts & { input: unknown },
  { error, retryable, retryAfterMs }: Unreadable,
): void {
  const { retry } = workflow.steps[step.index] ?? {};
  const looked = { ...step, attempt: step.attempt + 1 };
  if (!retryable || looked.attempt >= (retry?.attempts ?? DEFAULT_ATTEMPTS)) {
    const message = `${error.message}; nobody was asked, because the workflow says onDrift: refuse`;
    fail(draft, looked, recordedError(error.code, message), { input: step.input });
    return;
  }
  const delaysMs = retry?.backoffSeconds?.map((seconds) => seconds * 1000);
  // The target was asked after this draft began: its time counts from its answer.
  const notBefore = later(isoNow(worker.clock), retryAfterMs ?? 0);
  scheduleRetry(worker, draft, looked, error, { notBefore, delaysMs });
}
