import { CountersignError } from '../run/errors.ts';
import { isTerminal } from '../run/run.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { draftAndCommit, type FollowUp, loadState } from './commit-run.ts';
import type { RunChanger, RunState } from './run-changer.ts';

/** One try per change that others make meanwhile: more than the people who can decide on one approval. */
const TRIES_MAX = 32;

/** `parked`: no slot is free now, so the run must not become `running` by this change. */
type Changing = (state: RunState, draft: RunDraft, parked: boolean) => Promise<FollowUp | undefined>;

/** Changes a run outside the worker, in one commit. It never performs a step: a worker continues the run. */
export async function changeRun(
  changer: RunChanger,
  target: { tenant: string; runId: string },
  changing: Changing,
): Promise<RunState> {
  let parked = false;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const state = await loadState(changer, target);
    if (!state) throw new CountersignError('NOT_FOUND', `there is no run ${target.runId}`);
    if (isTerminal(state.run)) {
      throw new CountersignError(
        'RUN_TERMINAL_STATE',
        `the run has ended as ${state.run.status}; it can no longer be changed`,
      );
    }
    const drafted = await draftAndCommit(changer, state, (draft) => changing(state, draft, parked));
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
