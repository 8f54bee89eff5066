import { phaseApproval } from '../approval/find-covering-approval.ts';
import { requestWriteApproval } from '../approval/request-write-approval.ts';
import { stillMissing } from '../approval/votes.ts';
import type { Operation, Proposal } from '../connectors/connector.ts';
import { actionHash } from '../policy/action-hash.ts';
import { gateFor, retryAsks } from '../policy/gates.ts';
import { type ProposedAction, whyOf } from '../policy/policy.ts';
import { policyRequest } from '../policy/proposed-action.ts';
import { expressionScope } from '../proposal/expression-scope.ts';
import { actionOf, decided } from '../proposal/step-action.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import { approvedHashOf } from '../run/approval-phase.ts';
import { recordedError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Governed, Prepared, StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, scheduleRetry } from '../run-changes/step-endings.ts';
import { render } from '../workflow/expressions/expressions.ts';
import type { Worker } from './worker.ts';

/** The table was asked several times within seconds already; the run's deadline ends the waiting. */
const POLICIES_READ_AGAIN_AFTER_MS = 30_000;

export interface Proposed {
  step: StepFacts & Partial<Prepared>;
  input: unknown;
  operation: Operation;
  proposal: Proposal;
  instance: string;
  /** An earlier attempt may have had its effect: people would be asked about something that has happened already. */
  unsettled: boolean;
  /** A request for this very write has left before: sending it again is a retry. */
  retry: boolean;
  /** Looks whether another run has made the very write, and if so lets the step rest on that. */
  findDuplicateWrite: () => Promise<boolean>;
}

/**
 * Stands between a proposed call and its intent: policy decides, people where it or the run's mode says so. Gives the step
 * to go on with, or nothing: then it was denied, or waits at its gate; an unsettled one does neither and is left to the
 * caller. Nothing is sent before this has agreed, and after an approval it must agree anew.
 */
export async function govern(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  proposed: Proposed,
): Promise<StepFacts | undefined> {
  const { step, input } = proposed;
  const { approvalId, askedBefore = approvalId } = step.governed ?? {};
  const action = await actionOf(worker, state, draft, proposed);
  const request = policyRequest(draft.run, action);
  // A write may rest on an approval that another one of its phase stopped for.
  const restsOnApproval = approvalId !== undefined || state.workflow.validation?.mode === 'per_phase';
  const decision = await worker.policy.decide(request, { fresh: restsOnApproval });
  if (decision.verdict === 'deny' && decision.retryable) {
    // What an earlier attempt did stays unknown: if the run is stopped meanwhile, its compensation log must say so.
    const error = recordedError(proposed.unsettled ? 'OUTCOME_UNKNOWN' : decision.code, whyOf(decision));
    scheduleRetry(worker, draft, { ...step, input }, error, { retryAfterMs: POLICIES_READ_AGAIN_AFTER_MS });
    return undefined;
  }
  const hash = actionHash(action, input, decision.policyHash, draft.run.workflow);
  const governed: Governed = { request, decision, ...(askedBefore !== undefined && { askedBefore }) };
  draft.record(decided(step, action, decision, hash));

  if (decision.verdict === 'deny') {
    const error = recordedError(decision.code, whyOf(decision) || 'no policy permits it');
    const actor = decision.policyHash === '' ? 'policy' : `policy:${decision.policyHash}`;
    fail(draft, { ...step, governed }, error, { input, by: { initiator: 'policy', actor } });
    return undefined;
  }
  const approval = askedBefore === undefined ? undefined : await closedApproval(worker, draft, askedBefore);
  if (approval?.status === 'approved' && approvalId !== undefined) {
    const stale = await staleness(worker, draft, step, approval, action, hash);
    // What was agreed to has been sent: sending it once more is asked about anew, where it reaches far.
    const usedUp = proposed.retry && retryAsks(action);
    if (stale === undefined && !usedUp) return { ...step, governed: { request, decision, approvalId } };
    const approvedHash = approvedHashOf(approval, step.index) ?? approval.actionHash;
    const { id, index } = step;
    const because = stale ?? 'used';
    draft.record({ type: 'approval.stale', step: id, index, approvalId, because, approvedHash, actionHash: hash });
  }
  const confidence = await confidenceOf(worker, state, draft, step);
  const { workflow } = state;
  const { retry } = proposed;
  const { index } = step;
  const gate = gateFor({ decision, action, workflow, index, confidence, askedBefore: approval, retry });
  if (gate.kind === 'closed') {
    const wanted = { step, hash, requirement: gate.requirement, makers: action.makers, askedBefore };
    const covering = retry && retryAsks(action) ? undefined : await phaseApproval(worker, state, draft, wanted);
    if (covering && !isOpen(covering)) return coveredBy(state, draft, step, governed, covering);
    const asks = !proposed.unsettled && !(await proposed.findDuplicateWrite());
    if (asks && covering) waitWith(state, draft, { step, governed, input, covering });
    else if (asks) await requestWriteApproval(worker, state, draft, { ...proposed, governed, gate, actionHash: hash });
    return undefined;
  }
  if (gate.kind === 'auto_approved') {
    const { threshold } = gate;
    draft.record({ type: 'approval.auto_approved', step: step.id, confidence: gate.confidence, threshold });
  }
  return { ...step, governed };
}

/** The step rests on the approval of its phase; where drift is refused, its target must be as people were shown it. */
function coveredBy(
  { workflow }: RunState,
  draft: RunDraft,
  step: StepFacts,
  { request, decision }: Governed,
  { approvalId, phase }: Approval,
): StepFacts {
  const { id, index } = step;
  const before = phase?.writes.find(({ stepIndex }) => stepIndex === index)?.before;
  draft.record({ type: 'approval.covered', step: id, index, approvalId });
  return {
    ...step,
    governed: { request, decision, approvalId },
    ...(workflow.onDrift === 'refuse' && before && { expects: before }),
  };
}

/** People are already asked about this write, with another of its phase: it waits for the same decision. */
function waitWith(
  state: RunState,
  draft: RunDraft,
  waiting: { step: StepFacts; governed: Governed; input: unknown; covering: Approval },
): void {
  const { step, governed, input, covering } = waiting;
  const { approvalId, expiresAt } = covering;
  const covered = coveredBy(state, draft, { ...step, attempt: 0 }, governed, covering);
  draft.put({ ...covered, status: 'waiting_approval', approvalId, expiresAt, input });
}

async function closedApproval({ runs }: Worker, { run }: RunDraft, approvalId: string): Promise<Approval> {
  const approval = await runs.approval(run.tenant, run.runId, approvalId);
  if (!approval || isOpen(approval)) throw new Error(`a step was taken up although ${approvalId} is not decided`);
  return approval;
}

/** Why an approval no longer holds, if so: it is for one action under one policy, by people who may still give it. */
async function staleness(
  worker: Worker,
  { at, run }: RunDraft,
  { index }: StepFacts,
  approval: Approval,
  { makers }: ProposedAction,
  hash: string,
): Promise<'changed' | 'expired' | 'voters' | undefined> {
  if (approvedHashOf(approval, index) !== hash) return 'changed';
  if (approval.expiresAt <= at) return 'expired';
  const people = await worker.definitions.people(run.tenant, { fresh: true });
  return stillMissing({ ...approval, makers: [...approval.makers, ...makers] }, people) > 0 ? 'voters' : undefined;
}

async function confidenceOf(worker: Worker, state: RunState, draft: RunDraft, step: StepFacts): Promise<unknown> {
  const expression = step.undoes === undefined ? state.workflow.steps[step.index]?.confidence : undefined;
  return expression === undefined ? undefined : render(expressionScope(worker, state, draft), expression);
}
