import { UNDO_INDEX_OFFSET } from '../../run/step.ts';
import type { EvidenceEvent } from '../bundle/commit-entry.ts';
import type { Fields, RecordedFields, RecordedStep, Replay } from './replay.ts';

/** What each event tells of a step. Each step that a commit has reached ends before its run does. */
export const STEP_EVENTS: RecordedFields = {
  'policy.decided': (replay, event) => {
    const step = stepOf(replay, event);
    Object.assign(step, { decided: event, claim: undefined });
    step.shows.tool = event.tool;
  },
  'step.claimed': (replay, event) => {
    const step = stepOf(replay, event);
    step.claim = event;
    step.shows.tool = event.tool;
    replay.claimedLast = step;
  },
  'step.retry_scheduled': (replay, event) => {
    stepOf(replay, event).claim = undefined;
  },
  'step.retry_requested': (replay, event) => {
    stepOf(replay, event).claim = undefined;
  },
  'step.succeeded': (replay, event, { at }) => {
    const step = stepOf(replay, event);
    const reused = takeReused(replay, step, event);
    end(step, at, {
      status: 'succeeded',
      skipped: event.skipped,
      output: { sha256: event.outputHash },
      receiptKey: reused?.receiptKey,
      input: undefined,
    });
  },
  'step.failed': (replay, event, { at }) => {
    const step = stepOf(replay, event);
    takeReused(replay, step, event);
    end(step, at, { status: 'failed_terminal', error: event.error });
    // Whatever is tried next is asked about anew.
    step.approvalId = undefined;
  },
  'step.canceled': (replay, event, { at }) => {
    const step = stepOf(replay, event);
    end(step, at, { status: 'canceled', input: undefined });
  },
  'write.intended': ({ claimedLast }, { receiptKey }) => {
    if (claimedLast?.claim) claimedLast.claim = { ...claimedLast.claim, receiptKey };
  },
  'write.reused': (replay, event) => {
    replay.reusedLast = event;
  },
  'write.reversed': ({ steps }, { step: id, receiptKey }, { at }) => {
    for (const { shows } of steps.values()) {
      const isIt = shows.id === id && shows.status === 'succeeded' && shows.receiptKey === receiptKey;
      if (isIt) Object.assign(shows, { status: 'rolled_back', updatedAt: at });
    }
  },
};

/** The write that this very step did not have to make: then it has no claim, though it counts as tried once more. */
function takeReused(replay: Replay, step: RecordedStep, { step: id }: EvidenceEvent): EvidenceEvent | undefined {
  const { reusedLast } = replay;
  replay.reusedLast = undefined;
  if (reusedLast?.step !== id) return undefined;
  step.claim = undefined;
  return reusedLast;
}

/** What a step shows of its last claim, of the decision it was made on and of the approval it rests on. */
function claimShown({ claim, decided, approvalId }: RecordedStep): Fields {
  if (!claim) return {};
  const { attempt, leaseVersion, receiptKey } = claim;
  return {
    attempt,
    leaseVersion,
    receiptKey,
    approvalId,
    action: decided && { tool: decided.tool, target: decided.target, derived: decided.derived },
  };
}

function end(step: RecordedStep, at: string, ending: Fields): void {
  const { id, index, undoes, tool } = step.shows;
  const nothing = { skipped: undefined, output: undefined, error: undefined };
  step.shows = {
    ...(tool !== undefined && { tool }),
    ...{ id, index, undoes, ...nothing, updatedAt: at, completedAt: at },
    ...ending,
    ...claimShown(step),
  };
}

function stepOf({ steps }: Replay, { step: id, index }: EvidenceEvent): RecordedStep {
  const known = steps.get(index);
  if (known) return known;
  const undoes = typeof index === 'number' && index >= UNDO_INDEX_OFFSET ? index - UNDO_INDEX_OFFSET : undefined;
  const step: RecordedStep = { shows: { id, index, undoes } };
  steps.set(index, step);
  return step;
}
