import type { Operation } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { actionHash } from '../policy/action-hash.ts';
import { gateFor, writesOf } from '../policy/gates.ts';
import { type ApprovalRequirement, whyOf } from '../policy/policy.ts';
import { policyRequest } from '../policy/proposed-action.ts';
import { accessFor } from '../proposal/access.ts';
import { hasTime } from '../proposal/attempt-time.ts';
import { expressionScope } from '../proposal/expression-scope.ts';
import { look } from '../proposal/read-target.ts';
import { actionOf } from '../proposal/step-action.ts';
import type { AskedLater, PhaseWrite } from '../run/approval-phase.ts';
import { CountersignError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { STEP_SCHEMA_VERSION, type StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { Worker } from '../worker/worker.ts';
import { conditionHolds, render } from '../workflow/expressions/expressions.ts';
import { unknownNeeds } from '../workflow/expressions/missing-outputs.ts';
import { inOrder } from '../workflow/step-order.ts';
import { renderInput } from '../workflow/url-template.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';

/** As many as people can be expected to read; those beyond are asked about when they come up. */
const WRITES_SHOWN_MAX = 40;
const WRITES_SHOWN_MAX_BYTES = 200 * 1024;

interface Covered extends PhaseWrite {
  requirement?: ApprovalRequirement;
}

export interface RestOfPhase {
  writes: PhaseWrite[];
  askedLater: AskedLater[];
  /** What policy and the gates ask for any of them. */
  requirements: ApprovalRequirement[];
}

/** The writes of a step's phase that are still to come: those that can be shown now, and those that cannot yet. */
export async function restOfPhase(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  lead: StepFacts,
): Promise<RestOfPhase> {
  const { workflow } = state;
  const writes = writesOf(workflow);
  const { phase } = workflow.steps[lead.index] as WorkflowStep;
  const covered: Covered[] = [];
  const askedLater: AskedLater[] = [];
  let bytes = 0;
  for (const index of inOrder(workflow)) {
    const step = workflow.steps[index] as WorkflowStep;
    if (index === lead.index || step.phase !== phase || !writes.includes(index) || draft.steps.has(index)) continue;
    const found = await foresee(worker, state, draft, index, step);
    if (found === undefined) continue;
    if ('because' in found) {
      askedLater.push({ stepId: step.id, tool: step.tool, because: found.because });
      continue;
    }
    bytes += JSON.stringify(found).length;
    if (covered.length === WRITES_SHOWN_MAX || bytes > WRITES_SHOWN_MAX_BYTES) {
      askedLater.push({
        stepId: step.id,
        tool: step.tool,
        because: 'there is more in this phase than can be shown at once',
      });
    } else covered.push(found);
  }
  return {
    writes: covered.map(({ requirement: _asked, ...write }) => write),
    askedLater,
    requirements: covered.flatMap(({ requirement }) => requirement ?? []),
  };
}

/** A write as it will be proposed, or why that cannot be told; nothing, if it will be skipped. */
async function foresee(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  index: number,
  step: WorkflowStep,
): Promise<Covered | { because: string } | undefined> {
  const steps = [...draft.steps.values()];
  const missing = unknownNeeds(step, (id) => steps.some((other) => other.id === id && other.status === 'succeeded'));
  if (missing.length > 0) return { because: `it needs the output of ${missing.join(', ')}` };
  const operation = findOperation(step.tool) as Operation;
  try {
    const scope = expressionScope(worker, state, draft);
    if (step.when !== undefined && !conditionHolds(await render(scope, step.when))) return undefined;
    const input = await renderInput(operation, step.with, (given) => render(scope, given));
    return await propose(worker, state, draft, { index, step, operation, input });
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { because: `it cannot be proposed: ${error.message}` };
  }
}

async function propose(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  { index, step, operation, input }: { index: number; step: WorkflowStep; operation: Operation; input: unknown },
): Promise<Covered | { because: string }> {
  const { tenant, workflow } = draft.run;
  const facts: StepFacts = {
    ...{ schemaVersion: STEP_SCHEMA_VERSION, index, id: step.id, tool: step.tool },
    ...{ leaseVersion: 0, attempt: 0, updatedAt: draft.at },
  };
  const { instance } = await accessFor(worker, tenant, operation);
  const proposal = operation.propose(operation.parse(input), instance);
  const action = await actionOf(worker, state, draft, { step: facts, operation, proposal, instance });
  const decision = await worker.policy.decide(policyRequest(draft.run, action));
  if (decision.verdict === 'deny') return { because: `policy denies it: ${whyOf(decision)}` };
  const gate = gateFor({ decision, action, workflow: state.workflow, index });
  const seen = hasTime(worker) ? await look(worker, tenant, operation, input) : {};
  if (state.workflow.onDrift === 'refuse' && !('before' in seen && seen.before)) {
    return { because: 'what it would change could not be read' };
  }
  return {
    stepIndex: index,
    stepId: step.id,
    action,
    ...('before' in seen && seen.before && { before: seen.before }),
    ...(proposal.after && { after: proposal.after }),
    actionHash: actionHash(action, input, decision.policyHash, workflow),
    ...(gate.kind === 'closed' && { requirement: gate.requirement }),
  };
}
