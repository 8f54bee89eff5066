import { UNDO_INDEX_OFFSET } from '../step.ts';

/** An event as a bundle has it. It may be of a kind that this version does not know, or lack fields of its kind. */
export type RecordedEvent = { type: string; [field: string]: unknown };

/**
 * Fields of an entry as the commits prove them, under the names that the entry has for them. A field with the value
 * undefined must be absent from the entry. The commits say nothing about a field that is missing here.
 */
export type Fields = Record<string, unknown>;

export interface RecordedStep {
  fields: Fields;
  /** The last claim, with the receipt key of its write, unless something else has happened to the step since. */
  claim?: RecordedEvent;
  /** The last decision of policy about it. */
  decided?: RecordedEvent;
  /** The approval that it waits for or depends on. */
  approvalId?: unknown;
}

interface RecordedWrite {
  fields: Fields;
  /** The time of each of its attempts. */
  intentsAt: string[];
}

/** Everything that the commits prove about a run, from the first commit to the last. */
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
  /** The step claimed last and the write reused last: the event that belongs to them comes next. */
  claimedLast?: RecordedStep;
  reusedLast?: RecordedEvent;
}

/** The commit that an event is in. */
export interface When {
  at: string;
  seq: number;
}

export const emptyReplay = (runId: string): Replay => ({
  runId,
  // A run that was never accepted or never ended must not show these.
  run: {
    automation: undefined,
    request: undefined,
    status: undefined,
    startedAt: undefined,
    resumeCount: undefined,
    rollbackOf: undefined,
    rollback: undefined,
    compensation: undefined,
  },
  trigger: { source: undefined },
  steps: new Map(),
  writes: new Map(),
  reused: new Map(),
  approvals: new Map(),
});

export function stepOf({ steps }: Replay, { step: id, index }: RecordedEvent): RecordedStep {
  const known = steps.get(index);
  if (known) return known;
  const undoes = typeof index === 'number' && index >= UNDO_INDEX_OFFSET ? index - UNDO_INDEX_OFFSET : undefined;
  const step: RecordedStep = { fields: { id, index, undoes } };
  steps.set(index, step);
  return step;
}

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const isRecord = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
