import type { Operation, Proposal } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { hashOf } from '../run/canonical-json.ts';
import type { RunDraft } from '../run/commit.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { newLease } from '../run/lease.ts';
import { type IntentReceipt, RECEIPT_SCHEMA_VERSION } from '../run/receipt.ts';
import { type RunningStep, STEP_SCHEMA_VERSION, type Step } from '../run/step.ts';
import { dueBy, expectedVersion, planRetry, type Steps, succeeded } from './plan-endings.ts';
import type { HeldReceipts, Plan, RunState, Worker } from './worker.ts';

type Claimable = Pick<Step, 'index' | 'id' | 'tool' | 'leaseVersion' | 'attempt'> & { input: unknown };

/**
 * Takes the lease and puts the receipt as intent, in one commit. If the key is held by a success, the step succeeds with
 * that receipt and nothing is written; if by another run's open intent, this one comes back later.
 */
export async function planClaim(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  before: Steps,
  { step, unsettled }: { step: Claimable; unsettled: boolean },
  known: HeldReceipts,
): Promise<Plan & { reused?: true }> {
  const operation = findOperation(step.tool);
  if (!operation) throw new CountersignError('WORKFLOW_INVALID', `there is no tool ${step.tool}`);
  const expected = expectedVersion(before, step.index);
  const proposal = await propose(worker, state, operation, step);
  const held = known.get(proposal.key);
  const facts = {
    schemaVersion: STEP_SCHEMA_VERSION,
    index: step.index,
    id: step.id,
    tool: step.tool,
    leaseVersion: step.leaseVersion + 1,
    attempt: step.attempt + 1,
    updatedAt: draft.at,
  } as const;

  if (held?.outcome === 'succeeded') {
    const reused: Step = {
      ...facts,
      status: 'succeeded',
      output: held.output,
      receiptKey: held.key,
      completedAt: draft.at,
    };
    draft
      .writeStep(reused, expected)
      .record({ type: 'write.reused', step: step.id, receiptKey: held.key, firstRunId: held.runId }, succeeded(reused));
    return { draft, steps: new Map(before).set(step.index, reused), promises: [], reused: true };
  }
  if (held) {
    const error = recordedError(
      'OUTCOME_UNKNOWN',
      `run ${held.runId} is making the identical write; waiting for its outcome`,
    );
    return planRetry(worker, draft, before, { ...facts, input: step.input, receiptKey: proposal.key }, expected, error);
  }

  const lease = newLease(worker.ids.next('lease'), draft.at);
  const running: RunningStep = {
    ...facts,
    status: 'running',
    input: step.input,
    receiptKey: proposal.key,
    lease,
    startedAt: draft.at,
  };
  const receipt = intent(draft, running, operation, proposal);
  draft
    .note({ dueAt: dueBy(draft.run, lease.expiresAt) })
    .writeStep(running, expected)
    .writeReceipt(receipt, 'free')
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
        inputHash: hashOf(step.input),
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
  const steps = new Map(before).set(step.index, running);
  return { draft, steps, hold: { step: running, receipt, unsettled }, promises: [] };
}

async function propose(worker: Worker, state: RunState, operation: Operation, step: Claimable): Promise<Proposal> {
  const { instance } = await worker.connections.open(state.run.tenant, operation.connection);
  const proposal = operation.propose(operation.parse(step.input), instance);
  const oncePerRun = state.workflow.steps[step.index]?.dedupeScope === 'run';
  return oncePerRun ? { ...proposal, key: `${proposal.key}:${state.run.runId}:${step.id}` } : proposal;
}

function intent(draft: RunDraft, step: RunningStep, operation: Operation, proposal: Proposal): IntentReceipt {
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
    outcome: 'intent',
  };
}
