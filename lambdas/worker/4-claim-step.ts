import { findOperation } from '../connectors/registry.ts';
import { isoNow } from '../entry/ports.ts';
import { retryNeedsApproval } from '../policy/gates.ts';
import { AskedToWait, askedToWaitForFlag } from '../proposal/asked-to-wait.ts';
import { checkCommand } from '../proposal/check-command.ts';
import { checkPlanned, checkPolicies } from '../proposal/check-plan.ts';
import { isInPlace, isReusable } from '../proposal/find-duplicate-write.ts';
import { type ProposedCall, proposeCall } from '../proposal/propose-call.ts';
import { accessFor, connectionFor } from '../proposal/read-target.ts';
import { hashOf } from '../run/canonical-json.ts';
import { requestHash } from '../run/digest.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { newLease } from '../run/lease.ts';
import { type IntentReceipt, type OpenReceipt, RECEIPT_SCHEMA_VERSION, type Receipt, spentOn } from '../run/receipt.ts';
import { attemptsOf } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { assertConnectionAllowed } from '../run/run-terms.ts';
import { effectiveCaps, withOneMoreWrite } from '../run/settings/caps.ts';
import { isOn, WRITES_ARE_OFF } from '../run/settings/flags.ts';
import { flagOf, type Governed, type RunningStep, type StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { scheduleRetry } from '../run-changes/step-endings.ts';
import { attemptSpan, traceparentOf } from '../telemetry/trace-context.ts';
import { authorizeCall } from './3-authorize-call.ts';
import { originalWrite } from './replay-original.ts';
import { nextAttempt, reserveForUndo, reuseIdenticalWrite, reuseOrWait, wantedWrite } from './reuse-identical-write.ts';
import type { ClaimedStep, OpenAttempt, Worker } from './worker.ts';

interface StepToClaim {
  step: StepFacts;
  input: unknown;
  /** The receipt of its last attempt. */
  earlier?: Receipt;
}

/**
 * Proposes the call of a step. If the call is authorized, takes the lease and puts the intent receipt, in one commit. If
 * an identical write is in place, the step succeeds with its receipt and nothing is written; if another run is making it,
 * the step waits.
 */
export async function claimStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  toClaim: StepToClaim,
): Promise<ClaimedStep | undefined> {
  try {
    return await proposeAndClaim(worker, state, draft, toClaim);
  } catch (error) {
    if (!(error instanceof AskedToWait)) throw error;
    const { step, input, earlier } = toClaim;
    const { flag } = error;
    // The step still waits and nothing has changed, so nothing is committed. The sweeper sends the run again.
    if (flag !== undefined && flagOf(draft.steps.get(step.index)) === flag) return undefined;
    // An open attempt stays unknown: if the run is stopped meanwhile, its compensation log must say so.
    const code = isOpenWrite(earlier) ? 'OUTCOME_UNKNOWN' : error.code;
    const waiting = { ...step, input, ...(earlier && { receiptKey: earlier.key }) };
    scheduleRetry(worker, draft, waiting, recordedError(code, error.message), { notBefore: error.notBefore, flag });
    return undefined;
  }
}

async function proposeAndClaim(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, input, earlier }: StepToClaim,
): Promise<ClaimedStep | undefined> {
  const wanted = await proposeStep(worker, state, { step, input, earlier });
  await checkCommand(worker, state, wanted);
  assertWritesAreOn(worker, state, wanted);
  const original = earlier ? undefined : await originalWrite(worker, state, step, wanted);
  if (original) return reuseOrWait(worker, draft, { step, proposed: wanted }, original);
  const planned = checkPlanned(state.trigger, step, wanted);
  // A step of this commit may have the same key: its write was settled just now, or is about to begin.
  const held = draft.receipt(wanted.proposal.key);
  if (held && (!isReusable(held) || (await isInPlace(held, wantedWrite(worker, draft, { step, proposed: wanted }))))) {
    return reuseOrWait(worker, draft, { step, proposed: wanted }, held);
  }
  const proposed = held ? withOwnKey(state, step, wanted) : wanted;
  const open = isOpenWrite(earlier) ? openAttempt(state, wanted, step, earlier) : undefined;
  const unsettled = open !== undefined;
  const authorized = await authorizeCall(worker, state, draft, {
    step,
    proposed,
    unsettled,
    retry: (step.sent === true || wasSent(earlier)) && !unsettled,
    reuseIdenticalWrite: () => reuseIdenticalWrite(worker, draft, { step, proposed }),
  });
  if (!authorized) return undefined;
  checkPolicies(state.trigger, authorized);
  if (step.undoes !== undefined) await reserveForUndo(worker, draft, step.undoes);
  // An undo does not count: a run that has used up its budget can still be rolled back.
  const counts = proposed.operation.effect !== 'read' && step.undoes === undefined;
  if (counts && step.leaseVersion === 0) countWrite(state, draft);

  const { lease } = worker.executorFor(step.tool);
  const running: RunningStep = {
    ...nextAttempt(authorized, draft.at),
    ...planned,
    status: 'running',
    input,
    receiptKey: proposed.proposal.key,
    lease: newLease(worker.ids.next('lease'), draft.at, lease),
  };
  const receipt = intent(draft, running, proposed, { open, earlier });
  draft.put(running).putReceipt(receipt, 'free').record(claimed(running), intended(receipt));
  const { salt } = draft.run;
  const traceparent = traceparentOf(draft.run, attemptSpan(running.index, running.leaseVersion));
  return { step: running, receipt, traceparent, ...(open && { open }), ...(salt !== undefined && { salt }) };
}

/** The kill switch, before people are asked. The executor checks it again, just before the request is sent. */
function assertWritesAreOn({ clock }: Worker, { settings }: RunState, { operation }: ProposedCall): void {
  if (operation.effect === 'read' || isOn(settings, 'writes.enabled')) return;
  throw askedToWaitForFlag('WRITES_DISABLED', WRITES_ARE_OFF, 'writes.enabled', isoNow(clock));
}

async function proposeStep(
  worker: Worker,
  state: RunState,
  { step, input, earlier }: StepToClaim,
): Promise<ProposedCall> {
  const operation = findOperation(step.tool);
  if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
  assertConnectionAllowed(state.run, connectionFor(operation, input));
  const { instance } = await accessFor(worker, state.run.tenant, operation, input);
  const proposed = proposeCall({ operation, input, instance });
  // A retry repeats the same write, under the same key.
  if (earlier) return withKey(proposed, earlier.key);
  // A value that another run has read may have changed, and an undo is never a write that was made before.
  const oncePerRun =
    operation.effect === 'read' ||
    operation.oncePerRun === true ||
    step.undoes !== undefined ||
    state.workflow.steps[step.index]?.dedupeScope === 'run';
  return oncePerRun ? withOwnKey(state, step, proposed) : proposed;
}

const withKey = (proposed: ProposedCall, key: string): ProposedCall => ({
  ...proposed,
  proposal: { ...proposed.proposal, key },
});

function withOwnKey({ run }: RunState, { id, earlierCalls }: StepFacts, proposed: ProposedCall): ProposedCall {
  const again = earlierCalls === undefined ? '' : `:${earlierCalls}`;
  return withKey(proposed, `${proposed.proposal.key}:${run.runId}:${id}${again}`);
}

/** An attempt that may have changed the target. A read changes nothing. */
export const isOpenWrite = (receipt: Receipt | undefined): receipt is OpenReceipt =>
  (receipt?.outcome === 'intent' || receipt?.outcome === 'unknown') && receipt.effect !== 'read';

/** Whether a request for the write may have been sent. */
const wasSent = (earlier: Receipt | undefined): boolean =>
  earlier !== undefined && !(earlier.outcome === 'failed' && earlier.neverSent);

function openAttempt(
  { workflow }: RunState,
  { operation, input }: ProposedCall,
  step: StepFacts,
  { openSince, before }: OpenReceipt,
): OpenAttempt {
  const usedUp = step.attempt >= attemptsOf(operation, workflow.steps[step.index], input);
  const asksFirst = step.governed !== undefined && retryNeedsApproval(step.governed.request.action);
  return { since: openSince, probeOnly: usedUp || asksFirst, ...(!usedUp && { asksFirst }), ...(before && { before }) };
}

/** The write budget is part of the run row, so that a crash cannot lose the count. */
function countWrite({ settings, workflow }: RunState, draft: RunDraft): void {
  draft.note({
    writes: withOneMoreWrite(draft.run.writes, effectiveCaps(settings.caps, workflow.caps, draft.run.terms?.caps)),
  });
}

function intent(
  draft: RunDraft,
  step: RunningStep,
  { operation, proposal }: ProposedCall,
  { open, earlier }: { open?: OpenAttempt; earlier?: Receipt },
): IntentReceipt {
  const spentBefore = earlier && spentOn(earlier);
  return {
    schemaVersion: RECEIPT_SCHEMA_VERSION,
    tenant: draft.run.tenant,
    key: proposal.key,
    runId: draft.run.runId,
    stepId: step.id,
    stepIndex: step.index,
    tool: operation.tool,
    effect: operation.effect,
    target: proposal.target,
    fields: Object.keys(proposal.fields),
    requestHash: requestHash(proposal.fields, draft.run.salt),
    attempt: step.attempt,
    leaseVersion: step.leaseVersion,
    intentAt: draft.at,
    openSince: open?.since ?? draft.at,
    ...(open?.before && { before: open.before }),
    ...(spentBefore && { spentBefore }),
    ...(step.governed && { grounds: receiptGrounds(step.governed) }),
    outcome: 'intent',
  };
}

function claimed({ id, index, tool, lease, leaseVersion, attempt, input }: RunningStep) {
  return {
    type: 'step.claimed' as const,
    step: id,
    index,
    tool,
    owner: lease.owner,
    leaseVersion,
    leaseExpiresAt: lease.expiresAt,
    attempt,
    inputHash: hashOf(input),
  };
}

function intended({ stepId, key, tool, target, requestHash: hash, effect }: IntentReceipt) {
  const read = effect === 'read' && { read: true as const };
  return { type: 'write.intended' as const, step: stepId, receiptKey: key, tool, target, requestHash: hash, ...read };
}

function receiptGrounds({ decision, approvalId }: Governed): IntentReceipt['grounds'] {
  const { policyHash, policies } = decision;
  return { policyHash, policies, ...(approvalId !== undefined && { approvalId }) };
}
