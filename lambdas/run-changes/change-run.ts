import { CountersignError } from '../run/errors.ts';
import { isTerminal } from '../run/run.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { FollowUp } from '../worker/worker.ts';
import { draftAndCommit, loadState } from './commit-run.ts';
import type { RunChanger, RunState } from './run-changer.ts';

/** Each time somebody else was quicker; more than can decide on one approval, and whoever else moves the run. */
const TRIES_MAX = 32;

/** What is to happen to the run. `parked`: there is no place for it to run now, so it must go on without one. */
type Moving = (state: RunState, draft: RunDraft, parked: boolean) => Promise<FollowUp | undefined>;

/** Moves a run from outside a worker, in one commit. It never performs a step: whatever can go on is left to a worker. */
export async function changeRun(
  mover: RunChanger,
  target: { tenant: string; runId: string },
  moving: Moving,
): Promise<RunState> {
  let parked = false;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const state = await loadState(mover, target);
    if (!state) throw new CountersignError('NOT_FOUND', `there is no run ${target.runId}`);
    if (isTerminal(state.run)) {
      throw new CountersignError(
        'RUN_TERMINAL_STATE',
        `the run has ended as ${state.run.status}; it can no longer be changed`,
      );
    }
    const drafted = await draftAndCommit(mover, state, (draft) => moving(state, draft, parked));
    if (drafted.outcome === 'committed') return drafted.state;
    if (drafted.outcome === 'nothing') return state;
    if (drafted.outcome === 'no_slot' && parked) {
      throw new CountersignError(
        'CAP_EXCEEDED',
        'as many runs are running as the cap allows; try again when one has ended',
      );
    }
    if (drafted.outcome === 'no_slot') parked = true;
  }
  throw new CountersignError('CONFLICT', 'the run is changing too fast; try again');
}
