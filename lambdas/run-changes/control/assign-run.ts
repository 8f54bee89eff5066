import { CountersignError } from '../../run/errors.ts';
import type { Run } from '../../run/run.ts';
import { annotateRun } from '../change-run.ts';
import type { RunChanger } from '../run-changer.ts';

type Target = { tenant: string; runId: string };

/** Assigns a run, active or ended, to a person. A run has one assignee at a time. */
export async function assignRun(changer: RunChanger, target: Target, assignee: string, actor: string): Promise<Run> {
  const { run } = await annotateRun(changer, target, async ({ run: before }, draft) => {
    if (before.assignee === assignee) return undefined;
    if (before.assignee !== undefined) {
      throw new CountersignError(
        'CONFLICT',
        `this run is assigned to ${before.assignee}; release it first (countersign runs release ${before.runId})`,
      );
    }
    draft.note({ assignee }).record({ type: 'run.assigned', assignee, actor });
    return {};
  });
  return run;
}

/** Removes the assignee of a run. Releasing it again changes nothing. */
export async function releaseRun(changer: RunChanger, target: Target, actor: string): Promise<Run> {
  const { run } = await annotateRun(changer, target, async ({ run: { assignee } }, draft) => {
    if (assignee === undefined) return undefined;
    draft.note({ assignee: undefined }).record({ type: 'run.released', assignee, actor });
    return {};
  });
  return run;
}
