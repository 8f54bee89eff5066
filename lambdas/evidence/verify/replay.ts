import type { EvidenceCommit, EvidenceEvent } from '../bundle/commit-entry.ts';
import { APPROVAL_EVENTS } from './replay-approvals.ts';
import { RUN_EVENTS } from './replay-run.ts';
import { STEP_EVENTS } from './replay-steps.ts';
import { WRITE_EVENTS } from './replay-writes.ts';

/**
 * What the commits tell of an entry, under the names and in the form that the entry has for it. A field told as undefined
 * may not be shown; a field not told is the stage's word alone.
 */
export type Fields = Record<string, unknown>;

export interface RecordedStep {
  shows: Fields;
  /** The claim under which it is at work; nothing else has happened to the step since. */
  claim?: EvidenceEvent;
  /** What policy said of it last. */
  decided?: EvidenceEvent;
  /** The approval it waits for or rests on. */
  approvalId?: unknown;
}

export interface RecordedWrite {
  shows: Fields;
  /** When each of its attempts was intended. */
  intentsAt: string[];
}

/** Everything that can be known of a run from its commits, read from the first to the last. */
export interface Replay {
  runId: string;
  run: Fields;
  trigger: Fields;
  /** By index. */
  steps: Map<unknown, RecordedStep>;
  /** The writes of this run, by receipt key. */
  writes: Map<unknown, RecordedWrite>;
  /** The run that made each reused write, by receipt key. */
  reused: Map<unknown, unknown>;
  approvals: Map<unknown, Fields>;
  /** The step claimed last, and the write reused last: the event that belongs to it comes next. */
  claimedLast?: RecordedStep;
  reusedLast?: EvidenceEvent;
}

export interface When {
  /** The time of the commit. */
  at: string;
  seq: number;
}

/** For each type of event, what it tells. */
export type RecordedFields = Record<string, (replay: Replay, event: EvidenceEvent, when: When) => void>;

const ALL_EVENTS: readonly RecordedFields[] = [RUN_EVENTS, STEP_EVENTS, WRITE_EVENTS, APPROVAL_EVENTS];

export function replayOf(runId: string, commits: readonly EvidenceCommit[]): Replay {
  const replay: Replay = {
    runId,
    // Of a run that was never accepted, or never ended, nothing may be shown.
    run: {
      automation: undefined,
      status: undefined,
      startedAt: undefined,
      resumeCount: undefined,
      rollback: undefined,
      compensation: undefined,
    },
    trigger: { source: undefined },
    steps: new Map(),
    writes: new Map(),
    reused: new Map(),
    approvals: new Map(),
  };
  for (const { at, seq, events } of commits) {
    for (const event of events) {
      for (const recordedFields of ALL_EVENTS) {
        if (Object.hasOwn(recordedFields, event.type)) recordedFields[event.type]?.(replay, event, { at, seq });
      }
    }
  }
  return replay;
}
