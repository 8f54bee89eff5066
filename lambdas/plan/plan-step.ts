import { findOperation } from '../connectors/registry.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import { containsUnknown, KNOWN_AFTER_APPLY, shownValue } from '../proposal/known-after-apply.ts';
import { stepInput } from '../proposal/run-values.ts';
import { parsedInput } from '../run/check-input.ts';
import { CountersignError, type RecordedError, recordedError } from '../run/errors.ts';
import { conditionHolds } from '../workflow/expressions/expressions.ts';
import { ApprovalInput, type StepKind, type StepStart, startOf, stepKindOf } from '../workflow/step-kinds.ts';
import { type Leader, skippedByScope } from '../workflow/step-scope.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import type { Planner, PlanRequest } from './plan.ts';
import { type PlannedCall, type PlannedGate, planCall } from './plan-call.ts';
import { knownInPlan, valuesOf, type Walk } from './walk.ts';

interface PlannedFacts {
  id: string;
  tool: string;
  /** False after a step that fails or is denied: the run would not start this step. */
  reached: boolean;
  /** Whether the step runs depends on a value that is known after apply. */
  conditional: boolean;
}

export type PlannedStep = PlannedFacts &
  (
    | { kind: 'skipped' }
    | { kind: 'inner'; input: unknown }
    | { kind: 'gate'; gate: PlannedGate; message: unknown }
    | ({ kind: 'call' } & PlannedCall)
    | { kind: 'failing'; error: RecordedError }
  );

export async function planStep(
  planner: Planner,
  request: PlanRequest,
  walk: Walk,
  { index, reached }: { index: number; reached: boolean },
): Promise<PlannedStep> {
  const step = request.workflow.steps[index] as WorkflowStep;
  const facts = { id: step.id, tool: step.tool, reached, conditional: false };
  const handOn = (output: unknown) => {
    walk.context.steps[step.id] = { output: facts.conditional ? KNOWN_AFTER_APPLY : output };
  };
  handOn(KNOWN_AFTER_APPLY);
  const values = valuesOf(planner, request, walk, step);
  const skip = (): PlannedStep => {
    walk.leaders.set(step.id, 'skipped');
    handOn(null);
    return { ...facts, kind: 'skipped' };
  };
  try {
    const inScope = skippedByScope(step.scope, knownInPlan(walk));
    if (inScope === 'skipped' || isFurtherItem(step, inScope)) {
      if (step.scope?.item || walk.omitted.has(step.scope?.leader ?? '')) walk.omitted.add(step.id);
      return skip();
    }
    const when = step.when === undefined || (await values.render(step.when));
    facts.conditional = containsUnknown(when) || inScope === 'undecided';
    if (!containsUnknown(when) && !conditionHolds(when)) return skip();
    walk.leaders.set(step.id, facts.conditional ? 'undecided' : 'runs');
    const operation = findOperation(step.tool);
    const input = await stepInput(values, step);
    if (operation) {
      const { call, output } = await planCall(planner, request, walk, { ...facts, index, step, operation, input });
      handOn(output);
      return { ...facts, kind: 'call', ...call };
    }
    const kind = stepKindOf(step.tool);
    if (kind?.requestsApproval) return { ...facts, kind: 'gate', ...approvalStepGate(input) };
    const start = kind && !containsUnknown(input) ? startNow(kind, step.tool, input, planner.clock) : undefined;
    if (start?.action === 'succeed') handOn(start.output);
    else if (kind?.passesOn) handOn(kind.passesOn === 'input' ? input : (input as Input)[kind.passesOn.field]);
    return { ...facts, kind: 'inner', input: shownValue(input) };
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { ...facts, kind: 'failing', error: recordedError(error.code, error.message) };
  }
}

type Input = Record<string, unknown>;

/** While the list is not known, the plan shows only the step for its first item. */
const isFurtherItem = ({ scope }: WorkflowStep, inScope: Leader | undefined): boolean =>
  inScope === 'undecided' && (scope?.item?.position ?? 0) > 0;

function startNow(kind: StepKind<unknown>, tool: string, input: unknown, clock: Clock): StepStart {
  const at = isoNow(clock);
  return startOf(kind, tool, input, { at, deadlineAt: at });
}

/** A field that is known after apply is left out of the requirement. */
function approvalStepGate(input: unknown): { gate: PlannedGate; message: unknown } {
  const known = Object.fromEntries(Object.entries(input as object).filter(([, value]) => !containsUnknown(value)));
  const { message: _message, ...requirement } = parsedInput(ApprovalInput, 'approval', known);
  const { message = null } = shownValue(input) as { message?: unknown };
  return { gate: { asks: 'step', ...requirement }, message };
}
