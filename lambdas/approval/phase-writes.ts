import { findOperation } from '../connectors/registry.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { gateFor, writesOf } from '../policy/gates.ts';
import { type ApprovalRequirement, type Environment, type Policy, whyOf } from '../policy/policy.ts';
import { hasTime, type InvocationTime, readTime } from '../proposal/attempt-time.ts';
import { decideOnCall, makersOfStep, proposeCall } from '../proposal/propose-call.ts';
import { accessFor, readTarget, resolveNames, type TargetReader } from '../proposal/read-target.ts';
import { knownSteps, runValues, stepInput } from '../proposal/run-values.ts';
import type { AskedLater, PhaseWrite } from '../run/approval-phase.ts';
import { CountersignError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { newStep, type StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { conditionHolds, type Expressions } from '../workflow/expressions/expressions.ts';
import { missingOutputs } from '../workflow/expressions/missing-outputs.ts';
import { inOrder } from '../workflow/step-order.ts';
import { skippedByScope } from '../workflow/step-scope.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';

/** As many as people can be expected to read; the others get their own approval when they are proposed. */
const WRITES_SHOWN_MAX = 40;
const WRITES_SHOWN_MAX_BYTES = 200 * 1024;

export interface PhasePreviewer extends TargetReader, InvocationTime {
  definitions: Pick<Definitions, 'people'>;
  policy: Policy;
  environment: Environment;
  expressions: Expressions;
}

interface PreviewedWrite extends PhaseWrite {
  requirement?: ApprovalRequirement;
}

export interface RestOfPhase {
  writes: PhaseWrite[];
  askedLater: AskedLater[];
  /** What policy and the gates require for any of them. */
  requirements: ApprovalRequirement[];
}

/** The other writes of a step's phase that are still to come: those that can be shown now, and those that cannot. */
export async function restOfPhase(
  previewer: PhasePreviewer,
  state: RunState,
  draft: RunDraft,
  lead: StepFacts,
): Promise<RestOfPhase> {
  const { workflow } = state;
  const writes = writesOf(workflow);
  const { phase } = workflow.steps[lead.index] as WorkflowStep;
  const shown: PreviewedWrite[] = [];
  const askedLater: AskedLater[] = [];
  let bytes = 0;
  for (const index of inOrder(workflow)) {
    const step = workflow.steps[index] as WorkflowStep;
    if (index === lead.index || step.phase !== phase || !writes.includes(index) || draft.steps.has(index)) continue;
    const askLater = (because: string) => askedLater.push({ stepId: step.id, tool: step.tool, because });
    const found = await previewWrite(previewer, state, draft, index, step);
    if (found === undefined) continue;
    if ('because' in found) {
      askLater(found.because);
      continue;
    }
    bytes += JSON.stringify(found).length;
    if (shown.length === WRITES_SHOWN_MAX || bytes > WRITES_SHOWN_MAX_BYTES) {
      askLater('there is more in this phase than can be shown at once');
    } else shown.push(found);
  }
  return {
    writes: shown.map(({ requirement: _asked, ...write }) => write),
    askedLater,
    requirements: shown.flatMap(({ requirement }) => requirement ?? []),
  };
}

/** A write as it will be proposed, or why it cannot be shown; nothing if it will be skipped. */
async function previewWrite(
  previewer: PhasePreviewer,
  state: RunState,
  draft: RunDraft,
  index: number,
  step: WorkflowStep,
): Promise<PreviewedWrite | { because: string } | undefined> {
  const steps = [...draft.steps.values()];
  const missing = missingOutputs(step, (id) => steps.some((other) => other.id === id && other.status === 'succeeded'));
  if (missing.length > 0) return { because: `it needs the output of ${missing.join(', ')}` };
  try {
    if (skippedByScope(step.scope, knownSteps(draft.steps)) === 'skipped') return undefined;
    const values = runValues(previewer, state, draft, step);
    if (step.when !== undefined && !conditionHolds(await values.render(step.when))) return undefined;
    return await propose(previewer, state, draft, index, step, await stepInput(values, step));
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { because: `it cannot be proposed: ${error.message}` };
  }
}

async function propose(
  previewer: PhasePreviewer,
  state: RunState,
  draft: RunDraft,
  index: number,
  step: WorkflowStep,
  input: unknown,
): Promise<PreviewedWrite | { because: string }> {
  const { tenant } = draft.run;
  const { workflow } = state;
  const operation = findOperation(step.tool);
  if (!operation) return { because: `there is no tool ${step.tool}` };
  const { instance } = await accessFor(previewer, tenant, operation);
  // The step resolves its names again when it starts: if a name then refers to another record, it needs another approval.
  const resolved = await resolveNames(previewer, tenant, operation, input, readTime(previewer, draft.run, index));
  const proposed = proposeCall({ operation, input: resolved, instance });
  const facts = newStep(index, step, draft.at);
  const makers = makersOfStep(await previewer.definitions.people(tenant), state, draft, facts);
  const found = hasTime(previewer)
    ? await readTarget(previewer, tenant, proposed, readTime(previewer, draft.run, index))
    : {};
  const before = 'before' in found ? found.before : undefined;
  const asking = { at: draft.at, trigger: state.trigger, before };
  const decided = await decideOnCall(previewer, draft.run, proposed, { workflow, index, makers }, asking);
  const { action, decision, actionHash } = decided;
  if (decision.verdict === 'deny') return { because: `policy denies it: ${whyOf(decision)}` };
  const gate = gateFor({ decision, action, workflow, index });
  if (workflow.onDrift === 'refuse' && !before) return { because: 'the values that it would change could not be read' };
  const { after } = proposed.proposal;
  return {
    stepIndex: index,
    stepId: step.id,
    action,
    ...(before && { before }),
    ...(after && { after }),
    ...('why' in found && { unread: found.why }),
    ...('names' in found && found.names && { names: found.names }),
    actionHash,
    ...(gate.kind === 'closed' && { requirement: gate.requirement }),
  };
}
