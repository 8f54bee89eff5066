import { findCoveringApproval } from '../approval/find-covering-approval.ts';
import { requestWriteApproval } from '../approval/request-write-approval.ts';
import { stillMissing } from '../people/votes.ts';
import { approvalIsUsedUp, type Gate, gateFor } from '../policy/gates.ts';
import { type PolicyDecision, whyOf } from '../policy/policy.ts';
import { readTime } from '../proposal/attempt-time.ts';
import {
  type DecidedCall,
  decideOnCall,
  makersOfStep,
  type ProposedCall,
  policyDecided,
} from '../proposal/propose-call.ts';
import { readTarget } from '../proposal/read-target.ts';
import { runValues } from '../proposal/run-values.ts';
import { type Approval, isOpen } from '../run/approval.ts';
import { approvedHashOf } from '../run/approval-phase.ts';
import { recordedError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { type Governed, type Prepared, type StepFacts, withoutApproval } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, scheduleRetry } from '../run-changes/step-endings.ts';
import type { Worker } from './worker.ts';

/** The store has already retried the read for seconds. The deadline of the run ends the waiting. */
const POLICIES_READ_AGAIN_AFTER_MS = 30_000;

export interface CallToAuthorize {
  step: StepFacts & Partial<Prepared>;
  proposed: ProposedCall;
  /** The outcome of an earlier attempt is unknown: no approval is requested for a write that may have been made. */
  unsettled: boolean;
  /** A request for this write was sent before: sending it again is a retry. */
  retry: boolean;
  /** Ends the step if an identical write is already made. */
  reuseIdenticalWrite: () => Promise<boolean>;
}

/**
 * Policy decides on a proposed call, and people approve it where policy or the validation mode requires that. Returns
 * the step if the call may be made. Otherwise the step is denied or waits for its approval, except an unsettled one, which
 * the caller handles. After an approval, policy must agree again.
 */
export async function authorizeCall(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  call: CallToAuthorize,
): Promise<StepFacts | undefined> {
  const { step, retry } = call;
  const decided = await decideOnStep(worker, state, draft, call);
  const { request, decision, action } = decided;
  if (decision.verdict === 'deny') {
    deny(worker, draft, call, decided, decision);
    return undefined;
  }
  draft.record(policyDecided(step, decided));
  const { approvalId, askedBefore = approvalId } = step.governed ?? {};
  const approval = askedBefore === undefined ? undefined : await closedApproval(worker, draft, askedBefore);
  if (approval?.status === 'approved' && approvalId !== undefined) {
    const stale = await staleness(worker, draft, call, decided, approval);
    if (stale === undefined) return { ...step, governed: { request, decision, approvalId } };
    recordStale(draft, step, decided, approval, stale);
  }
  const { workflow } = state;
  const confidence = await confidenceOf(worker, state, draft, step);
  const gate = gateFor({ decision, action, workflow, index: step.index, confidence, askedBefore: approval, retry });
  if (gate.kind === 'closed') return passClosedGate(worker, state, draft, call, decided, gate);
  if (gate.kind === 'auto_approved') {
    const { threshold } = gate;
    draft.record({ type: 'approval.auto_approved', step: step.id, confidence: gate.confidence, threshold });
  }
  return { ...step, governed: withoutApproval(decided, step.governed) };
}

async function decideOnStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, proposed }: CallToAuthorize,
): Promise<DecidedCall> {
  const { workflow } = state;
  const makers = makersOfStep(await worker.definitions.people(draft.run.tenant), state, draft, step);
  // In mode `per_phase`, the approval of another write may cover this one.
  const usesApproval = step.governed?.approvalId !== undefined || workflow.validation?.mode === 'per_phase';
  const { index, undoes } = step;
  const before = async () => {
    const found = await readTarget(worker, draft.run.tenant, proposed, readTime(worker, draft.run, index));
    return 'why' in found ? undefined : found.before;
  };
  const asking = { at: draft.at, trigger: state.trigger, fresh: usesApproval, before };
  return await decideOnCall(worker, draft.run, proposed, { workflow, index, undoes, makers }, asking);
}

function deny(
  worker: Worker,
  draft: RunDraft,
  { step, proposed, unsettled }: CallToAuthorize,
  decided: DecidedCall,
  decision: Extract<PolicyDecision, { verdict: 'deny' }>,
): void {
  const { input } = proposed;
  if (decision.retryable) {
    // The earlier attempt stays unknown: if the run is stopped meanwhile, its compensation log must say so.
    const error = recordedError(unsettled ? 'OUTCOME_UNKNOWN' : decision.code, whyOf(decision));
    scheduleRetry(worker, draft, { ...step, input }, error, { retryAfterMs: POLICIES_READ_AGAIN_AFTER_MS });
    return;
  }
  draft.record(policyDecided(step, decided));
  const error = recordedError(decision.code, whyOf(decision) || 'no policy permits it');
  const actor = decision.policyHash === '' ? 'policy' : `policy:${decision.policyHash}`;
  const denied = { ...step, governed: withoutApproval(decided, step.governed) };
  fail(draft, denied, error, { input, by: { initiator: 'policy', actor } });
}

async function closedApproval({ runs }: Worker, { run }: RunDraft, approvalId: string): Promise<Approval> {
  const approval = await runs.approval(run.tenant, run.runId, approvalId);
  if (!approval || isOpen(approval)) throw new Error(`a step was claimed although ${approvalId} is not decided`);
  return approval;
}

/** Why an approval no longer counts: it is for one action under one policy, by people who may still approve it, once. */
async function staleness(
  worker: Worker,
  { at, run }: RunDraft,
  { step, retry }: CallToAuthorize,
  { action, actionHash }: DecidedCall,
  approval: Approval,
): Promise<'changed' | 'expired' | 'voters' | 'used' | undefined> {
  if (approvedHashOf(approval, step.index) !== actionHash) return 'changed';
  if (approval.expiresAt <= at) return 'expired';
  const people = await worker.definitions.people(run.tenant, { fresh: true });
  const makers = [...approval.makers, ...action.makers];
  if (stillMissing({ ...approval, makers }, people) > 0) return 'voters';
  return retry && approvalIsUsedUp(action) ? 'used' : undefined;
}

function recordStale(
  draft: RunDraft,
  { id, index }: StepFacts,
  { actionHash }: DecidedCall,
  approval: Approval,
  because: NonNullable<Awaited<ReturnType<typeof staleness>>>,
): void {
  const { approvalId } = approval;
  const approvedHash = approvedHashOf(approval, index) ?? approval.actionHash;
  draft.record({ type: 'approval.stale', step: id, index, approvalId, because, approvedHash, actionHash });
}

async function confidenceOf(worker: Worker, state: RunState, draft: RunDraft, step: StepFacts): Promise<unknown> {
  const definition = step.undoes === undefined ? state.workflow.steps[step.index] : undefined;
  if (definition?.confidence === undefined) return undefined;
  return runValues(worker, state, draft, definition).render(definition.confidence);
}

/** An approval is required: that of the phase may cover the call, otherwise people are asked. */
async function passClosedGate(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, proposed, unsettled, retry, reuseIdenticalWrite }: CallToAuthorize,
  decided: DecidedCall,
  gate: Extract<Gate, { kind: 'closed' }>,
): Promise<StepFacts | undefined> {
  const { action, actionHash } = decided;
  const governed = withoutApproval(decided, step.governed);
  const { askedBefore } = governed;
  const { environment, makers } = action;
  const wanted = { step, environment, actionHash, requirement: gate.requirement, makers, askedBefore };
  const covering =
    retry && approvalIsUsedUp(action) ? undefined : await findCoveringApproval(worker, state, draft, wanted);
  if (covering && !isOpen(covering)) return coveredBy(state, draft, step, governed, covering);
  if (unsettled || (await reuseIdenticalWrite())) return undefined;
  if (!covering) {
    await requestWriteApproval(worker, state, draft, { step, decided, governed, gate });
    return undefined;
  }
  // The open approval of another write of the phase covers this one: it waits for the same decision.
  const { approvalId, expiresAt } = covering;
  const waiting = coveredBy(state, draft, { ...step, attempt: 0 }, governed, covering);
  draft.put({ ...waiting, status: 'waiting_approval', approvalId, expiresAt, input: proposed.input });
  return undefined;
}

/** The approval of the phase covers the step. With `onDrift: refuse`, the target must be as people saw it. */
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
