import type { Operation, Proposal } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { retryAsks } from '../policy/gates.ts';
import { accessFor } from '../proposal/access.ts';
import { hashOf } from '../run/canonical-json.ts';
import { effectiveCaps, withOneMoreWrite } from '../run/caps.ts';
import { CountersignError } from '../run/errors.ts';
import { newLease } from '../run/lease.ts';
import { type IntentReceipt, type OpenReceipt, RECEIPT_SCHEMA_VERSION, type Receipt, spentOn } from '../run/receipt.ts';
import { attemptsOf } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Governed, RunningStep, StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { govern } from './3-authorize-call.ts';
import {
  type Asking,
  claim,
  reserveUndone,
  reuseIdenticalWrite,
  reuseOrWait,
  stillStands,
} from './reuse-identical-write.ts';
import type { ClaimedStep, OpenAttempt, Worker } from './worker.ts';

interface Claiming {
  step: StepFacts;
  input: unknown;
  /** The receipt of its last attempt. */
  earlier?: Receipt;
}

/**
 * Proposes the step's call; if it may be made, takes the lease and puts the receipt as intent, in one commit. If the key
 * is held by a success that still stands, the step succeeds with that receipt and nothing is written; if by another run's
 * open intent, this one comes back later.
 */
export async function claimStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, input, earlier }: Claiming,
): Promise<ClaimedStep | undefined> {
  const operation = findOperation(step.tool);
  if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
  const { instance } = await accessFor(worker, state.run.tenant, operation);
  const wanted = propose(state, operation, { step, input, earlier }, instance);
  const asking: Asking = { step, input, operation, proposal: wanted };
  // Another step of this very commit may have the identical write: settled just now, or about to begin.
  const held = draft.receipt(wanted.key);
  const stands = held && (await stillStands(worker, draft, asking, held));
  if (stands) return reuseOrWait(worker, draft, asking, held);
  const proposal = held ? { ...wanted, key: keyOfItsOwn(state.run, step, wanted) } : wanted;

  const open = isOpenWrite(earlier) ? openAttempt(state, operation, step, earlier) : undefined;
  const unsettled = open !== undefined;
  const retry = wasSent(earlier) && !unsettled;
  const findDuplicateWrite = () => reuseIdenticalWrite(worker, draft, { ...asking, proposal });
  const governed = await govern(worker, state, draft, {
    ...asking,
    proposal,
    instance,
    unsettled,
    retry,
    findDuplicateWrite,
  });
  if (!governed) return undefined;
  if (step.undoes !== undefined) await reserveUndone(worker, draft, step.undoes);
  // An undo does not count: a run that has used up its budget can still be taken back.
  const counts = operation.effect !== 'read' && step.undoes === undefined;
  if (counts && step.leaseVersion === 0) countWrite(state, draft);

  const lease = newLease(worker.ids.next('lease'), draft.at);
  const running: RunningStep = {
    ...claim(governed, draft.at),
    status: 'running',
    input,
    receiptKey: proposal.key,
    lease,
  };
  const receipt = intent(draft, running, operation, proposal, { open, earlier });
  draft.put(running).putReceipt(receipt, 'free').record(claimed(running), intended(receipt));
  return { step: running, receipt, ...(open && { open }) };
}

/** An attempt that may have had its effect. Nothing is done by reading. */
export const isOpenWrite = (receipt: Receipt | undefined): receipt is OpenReceipt =>
  (receipt?.outcome === 'intent' || receipt?.outcome === 'unknown') && receipt.effect !== 'read';

/** Whether a request for the write left the worker, as far as anybody knows. Where the outcome is open it is looked for first. */
const wasSent = (earlier: Receipt | undefined): boolean =>
  earlier !== undefined && !(earlier.outcome === 'failed' && earlier.neverSent);

function openAttempt(
  { workflow }: RunState,
  operation: Operation,
  step: StepFacts,
  { openSince, before }: OpenReceipt,
): OpenAttempt {
  const usedUp = step.attempt >= attemptsOf(operation, workflow.steps[step.index]);
  const asksFirst = step.governed !== undefined && retryAsks(step.governed.request.action);
  return { since: openSince, probeOnly: usedUp || asksFirst, ...(!usedUp && { asksFirst }), ...(before && { before }) };
}

/** The write budget is part of the run row, so that no crash can lose count of it. */
function countWrite({ settings, workflow }: RunState, draft: RunDraft): void {
  draft.note({ writes: withOneMoreWrite(draft.run.writes, effectiveCaps(settings.caps, workflow.caps)) });
}

function propose(
  { run, workflow }: RunState,
  operation: Operation,
  { step, input, earlier }: Claiming,
  instance: string,
): Proposal {
  const proposal = operation.propose(operation.parse(input), instance);
  // A repeat repeats the same write, whatever became of others meanwhile.
  if (earlier) return { ...proposal, key: earlier.key };
  // What is read may have changed since another run read it, and an undo is never the write someone made before.
  const oncePerRun =
    operation.effect === 'read' || step.undoes !== undefined || workflow.steps[step.index]?.dedupeScope === 'run';
  return oncePerRun ? { ...proposal, key: keyOfItsOwn(run, step, proposal) } : proposal;
}

const keyOfItsOwn = ({ runId }: RunState['run'], { id }: StepFacts, { key }: Proposal) => `${key}:${runId}:${id}`;

function intent(
  draft: RunDraft,
  step: RunningStep,
  operation: Operation,
  proposal: Proposal,
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
    requestHash: hashOf(proposal.fields),
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

function intended({ stepId, key, tool, target, requestHash }: IntentReceipt) {
  return { type: 'write.intended' as const, step: stepId, receiptKey: key, tool, target, requestHash };
}

function receiptGrounds({ decision, approvalId }: Governed): IntentReceipt['grounds'] {
  const { policyHash, policies } = decision;
  return { policyHash, policies, ...(approvalId !== undefined && { approvalId }) };
}
