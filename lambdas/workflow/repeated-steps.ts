import type { Step } from '../run/step.ts';
import { stepKindOf } from './step-kinds.ts';
import { needsOf } from './step-order.ts';
import type { Workflow } from './workflow.ts';

/**
 * The steps that a replay from one step repeats: this step, steps that did not succeed, and all steps that need one of
 * these. Approval steps are repeated too, because people decided for the original run only; a step that needs one
 * is not repeated for that reason alone.
 */
export function repeatedSteps(workflow: Workflow, from: string, succeeded: ReadonlySet<number>): ReadonlySet<number> {
  const repeated = new Set<number>();
  let first = Number.POSITIVE_INFINITY;
  let size = -1;
  // Needs may point forward in the file, so one pass is not always enough.
  while (repeated.size > size) {
    size = repeated.size;
    for (const [index, { id, needs }] of workflow.steps.entries()) {
      const after = needs ? needsOf(workflow, index).some((need) => repeated.has(need)) : first < index;
      if (id !== from && succeeded.has(index) && !after) continue;
      repeated.add(index);
      first = Math.min(first, index);
    }
  }
  for (const [index, { tool }] of workflow.steps.entries()) {
    if (stepKindOf(tool)?.requestsApproval) repeated.add(index);
  }
  return repeated;
}

export const succeededSteps = ({ steps }: { steps: readonly Step[] }): ReadonlySet<number> =>
  new Set(steps.flatMap(({ index, status }) => (status === 'succeeded' ? [index] : [])));
