import { isOpen } from '../approval/approval.ts';
import { newApprovalId, openGate } from '../approval/open-gate.ts';
import { personBehind } from '../approval/people.ts';
import type { Operation, Proposal } from '../connectors/connector.ts';
import { actionHash } from '../policy/action-hash.ts';
import { gateFor } from '../policy/gates.ts';
import { groundsOf, type PolicyDecision, type ProposedAction, whyOf } from '../policy/policy.ts';
import { policyRequest, proposedAction } from '../policy/proposed-action.ts';
import type { PolicyDecided } from '../run/commit.ts';
import { recordedError } from '../run/errors.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import { render } from '../workflow/expressions.ts';
import { accessFor } from './access.ts';
import { expressionContext } from './expression-context.ts';
import { fail } from './step-endings.ts';
import type { RunState, Worker } from './worker.ts';

export interface Proposed {
  step: StepFacts;
  input: unknown;
  operation: Operation;
  proposal: Proposal;
  instance: string;
  /** An earlier attempt may have had its effect: people would be asked about something that has happened already. */
  unsettled: boolean;
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
  const { step, input, operation, proposal, instance, unsettled } = proposed;
  const { workflow } = state;
  const definition = step.undoes === undefined ? workflow.steps[step.index] : undefined;
  const action = proposedAction({
    operation,
    proposal,
    instance,
    definition,
    workflow,
    environment: worker.environment,
    makers: [...new Set([...(await makersOf(worker, state, draft)), ...earlierMakers(step)])],
  });
  const request = policyRequest(draft.run, action);
  const approvalId = step.governed?.approvalId;
  const decision = await worker.policy.decide(request, { fresh: approvalId !== undefined });
  const hash = actionHash(action, input, decision.policyHash, draft.run.workflow);
  const governed: StepFacts = { ...step, governed: { request, decision } };
  draft.record(decided(governed, action, decision, hash));

  if (decision.verdict === 'deny') {
    fail(draft, governed, recordedError(decision.code, whyOf(decision) || 'no policy permits it'), { input });
    return undefined;
  }
  if (approvalId !== undefined && (await stillApproved(worker, draft, approvalId, hash, step))) {
    return { ...governed, governed: { request, decision, approvalId } };
  }
  const confidence = await confidenceOf(state, draft, step);
  const gate = gateFor({ decision, action, workflow, steps: draft.steps, index: step.index, confidence });
  if (gate.kind === 'open') return governed;
  if (gate.kind === 'auto_approved') {
    draft.record({
      type: 'approval.auto_approved',
      step: step.id,
      confidence: gate.confidence,
      threshold: gate.threshold,
    });
    return governed;
  }
  if (unsettled) return undefined;
  const before = await stateBefore(worker, draft.run.tenant, operation, input);
  openGate(state, draft, {
    step: {
      ...governed,
      governed: { request, decision, approvalId: newApprovalId(draft, step) },
      ...(before && workflow.onDrift === 'refuse' && { expects: before }),
    },
    asks: gate.asks,
    actionHash: hash,
    requirement: gate.requirement,
    grounds: groundsOf(decision),
    makers: action.makers,
    environment: worker.environment,
    write: { input, action, ...(before && { before }), ...(proposal.after && { after: proposal.after }) },
  });
  return undefined;
}

/** An edited payload stays its editor's, however often it is asked about anew. */
const earlierMakers = ({ governed }: StepFacts): string[] => governed?.request.action.makers ?? [];

/** Whoever had a hand in the write: what started the run, and who wrote the workflow. */
export async function makersOf(worker: Worker, { workflow }: RunState, draft: RunDraft): Promise<string[]> {
  const { tenant, trigger, enrichment } = draft.run;
  const identities = [
    ...(enrichment?.actor === undefined ? [] : [`${trigger.source}:${enrichment.actor}`]),
    ...(workflow.author === undefined ? [] : [workflow.author]),
  ];
  if (identities.length === 0) return [];
  const people = await worker.definitions.people(tenant);
  return [...new Set(identities.map((identity) => personBehind(people, identity)))];
}

/** An approval is for one action under one policy and workflow version; anything else is asked anew. */
async function stillApproved(
  worker: Worker,
  draft: RunDraft,
  approvalId: string,
  hash: string,
  step: StepFacts,
): Promise<boolean> {
  const approval = await worker.runs.approval(draft.run.tenant, draft.run.runId, approvalId);
  if (!approval || isOpen(approval)) throw new Error(`${step.id} was taken up although ${approvalId} is not decided`);
  const holds = approval.status === 'approved' && approval.actionHash === hash && approval.expiresAt > draft.at;
  if (!holds) {
    const { actionHash: approvedHash } = approval;
    draft.record({ type: 'approval.stale', step: step.id, approvalId, approvedHash, actionHash: hash });
  }
  return holds;
}

async function confidenceOf(state: RunState, draft: RunDraft, step: StepFacts): Promise<number | undefined> {
  const expression = step.undoes === undefined ? state.workflow.steps[step.index]?.confidence : undefined;
  if (expression === undefined) return undefined;
  const confidence = await render(expression, expressionContext(state, draft));
  return typeof confidence === 'number' && confidence >= 0 && confidence <= 1 ? confidence : undefined;
}

/** What people are shown as "before". A target that cannot be read now does not keep them from being asked. */
async function stateBefore(
  worker: Worker,
  tenant: string,
  operation: Operation,
  input: unknown,
): Promise<TouchedState | undefined> {
  try {
    return await operation.before?.(operation.parse(input), await accessFor(worker, tenant, operation));
  } catch (error) {
    worker.log.warn('what a write would change could not be read', { tool: operation.tool, error });
    return undefined;
  }
}

function decided(
  { id, index }: StepFacts,
  { tool, target }: ProposedAction,
  decision: PolicyDecision,
  hash: string,
): PolicyDecided {
  const { verdict, policyHash, policies, reasons } = decision;
  return {
    type: 'policy.decided',
    step: id,
    index,
    tool,
    target,
    verdict,
    policyHash,
    policies,
    reasons,
    actionHash: hash,
    ...(verdict === 'needs_approval' && decision.requirement),
    ...(verdict === 'deny' && decision.message !== undefined && { message: decision.message }),
  };
}
