import type { Operation, Proposal } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { hashOf } from '../run/canonical-json.ts';
import { effectiveCaps } from '../run/caps.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { newLease } from '../run/lease.ts';
import { type IntentReceipt, RECEIPT_SCHEMA_VERSION } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf, type Governed, type RunningStep, type StepFacts, type SucceededStep } from '../run/step.ts';
import { accessFor } from './access.ts';
import { govern } from './govern.ts';
import { scheduleRetry, succeeded } from './step-endings.ts';
import type { HeldReceipts, HeldStep, RunState, Worker } from './worker.ts';

/**
 * Proposes the step's call; if it may be made, takes the lease and puts the receipt as intent, in one commit. If the key
 * is held by a success, the step succeeds with that receipt and nothing is written; if by another run's open intent, this
 * one comes back later.
 */
export async function claimStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { step, input, openSince }: { step: StepFacts; input: unknown; openSince?: string },
  known: HeldReceipts,
): Promise<HeldStep | undefined> {
  const operation = findOperation(step.tool);
  if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
  const { instance } = await accessFor(worker, state.run.tenant, operation);
  const proposal = propose(state, operation, step, input, instance);
  // Another step of this very commit may have the identical write: settled just now, or about to begin.
  const held = draft.receipt(proposal.key) ?? known.get(proposal.key);

  if (held?.outcome === 'succeeded') {
    const reused: SucceededStep = {
      ...claim(step, draft.at),
      status: 'succeeded',
      output: held.output,
      receiptKey: held.key,
      completedAt: draft.at,
    };
    draft
      .put(reused)
      .record({ type: 'write.reused', step: step.id, receiptKey: held.key, firstRunId: held.runId }, succeeded(reused));
    return undefined;
  }
  if (held) {
    const error = recordedError(
      'OUTCOME_UNKNOWN',
      `run ${held.runId} is making the identical write; waiting for its outcome`,
    );
    // It claims nothing yet: its fencing number stays, and its write is counted when it is really begun.
    const waiting = { ...claim(step, draft.at), leaseVersion: step.leaseVersion };
    scheduleRetry(worker, draft, { ...waiting, input, receiptKey: proposal.key }, error);
    return undefined;
  }
  const unsettled = openSince !== undefined;
  const governed = await govern(worker, state, draft, { step, input, operation, proposal, instance, unsettled });
  if (!governed) return undefined;
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
    startedAt: draft.at,
  };
  const receipt = intent(draft, running, operation, proposal, openSince);
  draft
    .put(running)
    .putReceipt(receipt, 'free')
    .record(
      {
        type: 'step.claimed',
        step: step.id,
        index: step.index,
        tool: step.tool,
        owner: lease.owner,
        leaseVersion: running.leaseVersion,
        leaseExpiresAt: lease.expiresAt,
        attempt: running.attempt,
        inputHash: hashOf(input),
      },
      {
        type: 'write.intended',
        step: step.id,
        receiptKey: receipt.key,
        tool: step.tool,
        target: receipt.target,
        requestHash: receipt.requestHash,
      },
    );
  return { step: running, receipt, unsettled };
}

/** The write budget is part of the run row, so that no crash can lose count of it. */
function countWrite({ settings, workflow }: RunState, draft: RunDraft): void {
  const { maxWritesPerRun } = effectiveCaps(settings.caps, workflow.caps);
  const writes = draft.run.writes + 1;
  if (maxWritesPerRun !== undefined && writes > maxWritesPerRun) {
    throw new CountersignError('CAP_EXCEEDED', `this run may make ${maxWritesPerRun} writes and has made them`);
  }
  draft.note({ writes });
}

/** What the next claimant of the step is known by. */
function claim(step: StepFacts, at: string): StepFacts {
  return { ...factsOf(step, at), leaseVersion: step.leaseVersion + 1, attempt: step.attempt + 1 };
}

function propose(
  { run, workflow }: RunState,
  operation: Operation,
  step: StepFacts,
  input: unknown,
  instance: string,
): Proposal {
  const proposal = operation.propose(operation.parse(input), instance);
  // What is read may have changed since another run read it, and an undo is never the write someone made before.
  const oncePerRun =
    operation.effect === 'read' || step.undoes !== undefined || workflow.steps[step.index]?.dedupeScope === 'run';
  return oncePerRun ? { ...proposal, key: `${proposal.key}:${run.runId}:${step.id}` } : proposal;
}

function intent(
  draft: RunDraft,
  step: RunningStep,
  operation: Operation,
  proposal: Proposal,
  openSince = draft.at,
): IntentReceipt {
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
    openSince,
    ...(step.governed && { grounds: groundsOf(step.governed) }),
    outcome: 'intent',
  };
}

function groundsOf({ decision, approvalId }: Governed): IntentReceipt['grounds'] {
  const { policyHash, policies } = decision;
  return { policyHash, policies, ...(approvalId !== undefined && { approvalId }) };
}
