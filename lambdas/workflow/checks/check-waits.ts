import { RUN_DEADLINE_MS } from '../../run/run.ts';
import { stepKindOf } from '../step-kinds.ts';
import type { Workflow, WorkflowStep } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';

const DEADLINE_DEFAULT_SECONDS = RUN_DEADLINE_MS / 1000;

/** Finds waits that cannot end before the deadline of the run. Time that people need for approvals does not count. */
export function waitProblems(
  { deadlineSeconds = DEADLINE_DEFAULT_SECONDS }: Workflow,
  step: WorkflowStep,
  earlier: readonly WorkflowStep[],
): Problem[] {
  const wait = waitOf(step);
  if (!wait) return [];
  // A step with a condition may be skipped, and a loop may have no item.
  const always = earlier.filter(({ when, scope }) => when === undefined && !scope?.item);
  const before = always.flatMap((each) => waitOf(each) ?? []);
  const beforeSeconds = before.reduce((sum, { seconds, always }) => sum + (always ? seconds : 0), 0);
  const totalSeconds = wait.seconds + (wait.always ? beforeSeconds : 0);
  if (totalSeconds < deadlineSeconds) return [];
  const message = `the run's deadline is ${deadlineSeconds} s; set deadlineSeconds to more than ${totalSeconds}, or wait less`;
  return [{ path: ['with', wait.field], message }];
}

function waitOf({ tool, with: input }: WorkflowStep) {
  const waits = stepKindOf(tool)?.waits;
  const seconds = waits && input[waits.field];
  return waits && typeof seconds === 'number' ? { ...waits, seconds } : undefined;
}
