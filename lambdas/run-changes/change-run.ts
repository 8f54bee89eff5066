import { newOutboxEntry } from '../outbox/outbox.ts';
import { CountersignError } from '../run/errors.ts';
import { isTerminal } from '../run/run.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { ContextMissing, draftAndCommit, type FollowUp, loadState } from './commit-run.ts';
import type { RunChanger, RunState } from './run-changer.ts';

/** One try per change that others make meanwhile: more than the people who can decide on one approval. */
const TRIES_MAX = 32;

/** If there is no free slot now, the run must not become `running` by this change. */
type Changing = (state: RunState, draft: RunDraft, noFreeSlot: boolean) => Promise<FollowUp | undefined>;

interface Target {
  tenant: string;
  runId: string;
}

/** Changes a run outside the worker, in one commit. It never performs a step: a worker continues the run. */
export function changeRun(changer: RunChanger, target: Target, changing: Changing): Promise<RunState> {
  return commitChange(changer, target, loadState, (state, draft, noFreeSlot) => {
    if (!isTerminal(state.run)) return changing(state, draft, noFreeSlot);
    throw new CountersignError(
      'RUN_TERMINAL_STATE',
      `the run has ended as ${state.run.status}; it can no longer be changed`,
    );
  });
}

/**
 * Records what people add to a run, also after it has ended. Then each commit is sealed as an addendum to its evidence.
 * Works without the workflow and the trigger: people can also assign and resolve a run that failed because one of them is missing.
 */
export function annotateRun(changer: RunChanger, target: Target, changing: Changing): Promise<RunState> {
  return commitChange(changer, target, loadAsFarAsStored, async (state, draft, noFreeSlot) => {
    const next = await changing(state, draft, noFreeSlot);
    const { tenant, runId, seq } = state.run;
    if (next && isTerminal(state.run)) {
      draft.enqueue(newOutboxEntry({ kind: 'seal_addendum', tenant, runId, seq: seq + 1 }, draft.at));
    }
    return next;
  });
}

const loadAsFarAsStored: typeof loadState = (changer, target) =>
  loadState(changer, target).catch((error: unknown) => {
    if (error instanceof ContextMissing) return error.state;
    throw error;
  });

async function commitChange(
  changer: RunChanger,
  target: Target,
  load: typeof loadState,
  changing: Changing,
): Promise<RunState> {
  let noFreeSlot = false;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const state = await load(changer, target);
    if (!state) throw new CountersignError('NOT_FOUND', `there is no run ${target.runId}`);
    const drafted = await draftAndCommit(changer, state, (draft) => changing(state, draft, noFreeSlot));
    if (drafted.outcome === 'committed') return drafted.state;
    if (drafted.outcome === 'nothing') return state;
    if (drafted.outcome === 'no_slot' && noFreeSlot) {
      throw new CountersignError(
        'CAP_EXCEEDED',
        'as many runs are running as the cap allows; try again when one has ended',
      );
    }
    if (drafted.outcome === 'no_slot') noFreeSlot = true;
  }
  throw new CountersignError('CONFLICT', 'the run is changing too fast; try again');
}
