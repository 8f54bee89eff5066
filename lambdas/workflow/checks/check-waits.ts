import { RUN_DEADLINE_MS } from '../../run/run.ts';
import type { Workflow, WorkflowStep } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';

const DEADLINE_DEFAULT_SECONDS = RUN_DEADLINE_MS / 1000;

/** Waits that cannot end before the run's deadline does: only the time that people take is not counted towards it. */
export function waitProblems(
  { deadlineSeconds: own }: Workflow,
  step: WorkflowStep,
  earlier: readonly WorkflowStep[],
): Problem[] {
  const deadlineSeconds = own ?? DEADLINE_DEFAULT_SECONDS;
  const raise = (atLeastSeconds: number) =>
    `the run ends ${deadlineSeconds} s after it began; set deadlineSeconds to more than ${atLeastSeconds}, or wait for less`;
  const { timeoutSeconds } = step.with;
  if (step.tool === 'wait.external' && typeof timeoutSeconds === 'number' && timeoutSeconds >= deadlineSeconds) {
    return [{ path: ['with', 'timeoutSeconds'], message: raise(timeoutSeconds) }];
  }
  const ownSeconds = secondsOf(step);
  if (ownSeconds === 0) return [];
  // Those that may be skipped may take no time.
  const before = earlier.filter(({ when }) => when === undefined).reduce((sum, each) => sum + secondsOf(each), 0);
  if (before + ownSeconds < deadlineSeconds) return [];
  return [{ path: ['with', 'seconds'], message: raise(before + ownSeconds) }];
}

/** How long a step surely waits, if that is written out. */
const secondsOf = ({ tool, with: input }: WorkflowStep): number =>
  tool === 'wait' && typeof input.seconds === 'number' ? input.seconds : 0;
