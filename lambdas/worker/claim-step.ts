import type { Operation, Proposal } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { hashOf } from '../run/canonical-json.ts';
import { effectiveCaps } from '../run/caps.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { newLease } from '../run/lease.ts';
import { type IntentReceipt, RECEIPT_SCHEMA_VERSION } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf, type RunningStep, type StepFacts, type SucceededStep } from '../run/step.ts';
import { scheduleRetry, succeeded } from './step-endings.ts';
import type { HeldReceipts, HeldStep, RunState, Worker } from './worker.ts';

/**
 * Takes the lease and puts the receipt as intent, in one commit. If the key is held by a success, the step succeeds with
 * that receipt and nothing is written; if by another run's open intent, this one comes back later.
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
  const proposal = await propose(worker, state, operation, step, input);
  const claimed = { ...factsOf(step, draft.at), leaseVersion: step.leaseVersion + 1, attempt: step.attempt + 1 };
  // Another step of this very commit may have the identical write: settled just now, or about to begin.
  const held = draft.receipt(proposal.key) ?? known.get(proposal.key);

  if (held?.outcome === 'succeeded') {
    const reused: SucceededStep = {
      ...claimed,
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
    const { leaseVersion } = step;
    scheduleRetry(worker, draft, { ...claimed, leaseVersion, input, receiptKey: proposal.key }, error);
    return undefined;
  }
  if (step.leaseVersion === 0) countWrite(state, draft);

  const lease = newLease(worker.ids.next('lease'), draft.at);
  const running: RunningStep = {
    ...claimed,
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
  return { step: running, receipt, unsettled: openSince !== undefined };
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

async function propose(
  worker: Worker,
  state: RunState,
  operation: Operation,
  step: StepFacts,
  input: unknown,
): Promise<Proposal> {
  const { instance } = await worker.connections.open(state.run.tenant, operation.connection);
  const proposal = operation.propose(operation.parse(input), instance);
  const oncePerRun = state.workflow.steps[step.index]?.dedupeScope === 'run';
  return oncePerRun ? { ...proposal, key: `${proposal.key}:${state.run.runId}:${step.id}` } : proposal;
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
    outcome: 'intent',
  };
}
