import { requestStepApproval } from '../approval/request-step-approval.ts';
import { hasTime } from '../proposal/attempt-time.ts';
import { knownSteps, runValues, stepInput } from '../proposal/run-values.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { newStep, type StepFacts } from '../run/step.ts';
import { concludeRun } from '../run-changes/conclusion/conclude-run.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, succeed } from '../run-changes/step-endings.ts';
import { conditionHolds } from '../workflow/expressions/expressions.ts';
import { type StepStart, startOf, stepKindOf } from '../workflow/step-kinds.ts';
import { runnableSteps } from '../workflow/step-order.ts';
import { skippedByScope } from '../workflow/step-scope.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import { claimStep } from './4-claim-step.ts';
import { copyStep } from './replay-original.ts';
import { resolveStepNames } from './resolve-step-names.ts';
import { undoNextWrite } from './undo-next-write.ts';
import type { ClaimedStep, Claims, Worker } from './worker.ts';

/** A transaction holds 100 rows, and a claim writes two: this many steps leave enough rows for the rest of the commit. */
const STEPS_STARTED_PER_COMMIT_MAX = 20;
/** A skipped step writes one row. A loop with few items skips many steps. */
const SKIPPED_COUNTS_AS = 0.5;

/**
 * Starts every step whose needs are met. Steps that call no target end at once, and the steps after them start too. Then
 * concludes the draft.
 */
export async function startReadySteps(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  alreadyClaimed: ClaimedStep[] = [],
): Promise<Claims> {
  const claimed = [...alreadyClaimed];
  const add = (step: ClaimedStep | undefined) => {
    if (step) claimed.push(step);
  };
  if (draft.run.status === 'rolling_back') {
    add(await undoNextWrite(worker, state, draft));
    return { claimed, ...(await concludeRun(worker.runs, state, draft)) };
  }
  let started = 0;
  const mayStart = () =>
    draft.run.stopRequest === undefined &&
    ![...draft.steps.values()].some(({ status }) => status === 'failed_terminal') &&
    started < STEPS_STARTED_PER_COMMIT_MAX &&
    hasTime(worker);
  for (let next = runnableSteps(state.workflow, draft.steps); next.length > 0 && mayStart(); ) {
    for (const index of next) {
      if (!mayStart()) break;
      add(await startStep(worker, state, draft, index));
      const step = draft.steps.get(index);
      started += step?.status === 'succeeded' && step.skipped ? SKIPPED_COUNTS_AS : 1;
    }
    next = runnableSteps(state.workflow, draft.steps);
  }
  return { claimed, ...(await concludeRun(worker.runs, state, draft)) };
}

/** Starts one step: it ends at once, waits, or is claimed for this worker. A step that cannot start fails with the reason. */
export async function startStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  index: number,
): Promise<ClaimedStep | undefined> {
  const definition = state.workflow.steps[index] as WorkflowStep;
  const step = newStep(index, definition, draft.at, draft.steps.get(index));
  if (await copyStep(worker, state, draft, step)) return undefined;
  try {
    const values = runValues(worker, state, draft, definition);
    if (skippedByScope(definition.scope, knownSteps(draft.steps)) === 'skipped') {
      succeed(draft, step, { output: null, skipped: true });
      return undefined;
    }
    if (definition.when !== undefined && !conditionHolds(await values.render(definition.when))) {
      succeed(draft, step, { output: null, skipped: true });
      return undefined;
    }
    const input = await stepInput(values, definition);
    const kind = stepKindOf(definition.tool);
    if (!kind) {
      const { prepare } = worker.executorFor(definition.tool);
      const prepared = prepare ? await prepare(worker, draft, input) : input;
      const resolved = await resolveStepNames(worker, state, draft, step, prepared);
      return resolved && (await claimStep(worker, state, draft, { step: { ...step, attempt: 0 }, ...resolved }));
    }
    const start = startOf(kind, definition.tool, input, { at: draft.at, deadlineAt: draft.run.deadlineAt });
    switch (start.action) {
      case 'succeed':
        succeed(draft, step, { output: start.output });
        break;
      case 'request_approval':
        await requestStepApproval(worker, state, draft, step, start.approval);
        break;
      case 'wait':
        startWait(draft, step, start.awaits);
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    fail(draft, step, recordedError(error.code, error.message));
    return undefined;
  }
}

function startWait(draft: RunDraft, step: StepFacts, awaits: Extract<StepStart, { action: 'wait' }>['awaits']): void {
  draft.put({ ...step, status: 'waiting_external', awaits }).record({
    type: 'step.waiting',
    step: step.id,
    index: step.index,
    awaits: awaits.kind,
    ...(awaits.kind === 'signal' && { signal: awaits.event }),
    until: awaits.until,
  });
}
