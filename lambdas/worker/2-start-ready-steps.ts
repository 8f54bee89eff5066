import { requestStepApproval } from '../approval/request-step-approval.ts';
import { findOperation } from '../connectors/registry.ts';
import { hasTime } from '../proposal/attempt-time.ts';
import { expressionScope } from '../proposal/expression-scope.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { STEP_SCHEMA_VERSION, type StepFacts } from '../run/step.ts';
import { concludeRun } from '../run-changes/conclude-run.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { fail, succeed } from '../run-changes/step-endings.ts';
import { conditionHolds, render } from '../workflow/expressions/expressions.ts';
import { runnableSteps } from '../workflow/step-order.ts';
import { renderInput } from '../workflow/url-template.ts';
import type { WorkflowStep } from '../workflow/workflow.ts';
import { claimStep } from './4-claim-step.ts';
import { undoNextWrite } from './undo-next-write.ts';
import { parseWait } from './wait-step.ts';
import type { ClaimedStep, FollowUp, Worker } from './worker.ts';

/** A transaction holds 100 rows, and a claim writes two: this many steps begun in one commit leave room for the rest. */
const STEPS_BEGUN_PER_COMMIT_MAX = 20;

/**
 * Goes as far as the run can go now: begins every step whose needs are met, past those that need nothing outside,
 * until all that is left is at work, waiting, or done; then says what that makes of the run.
 */
export async function startReadySteps(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  holding: ClaimedStep[] = [],
): Promise<FollowUp> {
  const holds = [...holding];
  if (draft.run.status === 'rolling_back') {
    const held = await undoNextWrite(worker, state, draft);
    return { holds: held ? [...holds, held] : holds, ...(await concludeRun(worker.runs, state, draft)) };
  }
  let begun = 0;
  const mayBegin = () =>
    draft.run.stopRequest === undefined &&
    ![...draft.steps.values()].some(({ status }) => status === 'failed_terminal') &&
    begun < STEPS_BEGUN_PER_COMMIT_MAX &&
    hasTime(worker);
  for (let next = runnableSteps(state.workflow, draft.steps); next.length > 0 && mayBegin(); ) {
    for (const index of next) {
      if (!mayBegin()) break;
      begun += 1;
      const held = await beginStep(worker, state, draft, index);
      if (held) holds.push(held);
    }
    next = runnableSteps(state.workflow, draft.steps);
  }
  return { holds, ...(await concludeRun(worker.runs, state, draft)) };
}

/** Begins one step: done at once, set to wait, or claimed for this worker. What cannot begin fails, with the reason. */
export async function beginStep(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  index: number,
): Promise<ClaimedStep | undefined> {
  const definition = state.workflow.steps[index] as WorkflowStep;
  const { leaseVersion = 0, retriedBy } = draft.steps.get(index) ?? {};
  const step: StepFacts = {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id: definition.id,
    tool: definition.tool,
    leaseVersion,
    attempt: 0,
    startedAt: draft.steps.get(index)?.startedAt ?? draft.at,
    updatedAt: draft.at,
    ...(retriedBy && { retriedBy }),
  };
  try {
    const scope = expressionScope(worker, state, draft);
    if (definition.when !== undefined && !conditionHolds(await render(scope, definition.when))) {
      succeed(draft, step, { output: null, skipped: true });
      return undefined;
    }
    const input = await renderInput(findOperation(definition.tool), definition.with, (given) => render(scope, given));
    switch (definition.tool) {
      case 'transform':
        succeed(draft, step, { output: input });
        return undefined;
      case 'approval':
        await requestStepApproval(worker, state, draft, step, input);
        return undefined;
      case 'wait':
      case 'wait.external': {
        const awaits = parseWait(definition.tool, input, draft);
        draft.put({ ...step, status: 'waiting_external', awaits }).record({
          type: 'step.waiting',
          step: step.id,
          index,
          awaits: awaits.kind,
          ...(awaits.kind === 'signal' && { signal: awaits.event }),
          until: awaits.until,
        });
        return undefined;
      }
      default:
        return await claimStep(worker, state, draft, { step, input });
    }
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    fail(draft, step, recordedError(error.code, error.message));
    return undefined;
  }
}
