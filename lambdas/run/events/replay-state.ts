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
  /** The claim has started a session: the output of the step is that of the session, and the receipt has its start. */
  hasSession?: boolean;
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
  /** The first event that contradicts an earlier one. */
  contradiction?: { seq: number; problem: string };
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
    requester: undefined,
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

/**
 * Notes the step and the approval that an event names. A step has one id, an approval is requested first, and the event
 * right before an intent is the claim of its step.
 */
export function noteNames(
  replay: Replay,
  event: RecordedEvent,
  previous: RecordedEvent | undefined,
  seq: number,
): void {
  const { type, step, index, approvalId } = event;
  if (type === 'write.intended' && previous?.type !== 'step.claimed') {
    replay.contradiction ??= { seq, problem: `begins a write of ${String(step)} without a claim right before it` };
  }
  if (step !== undefined && index !== undefined) {
    const { id } = stepOf(replay, event).fields;
    const problem = `names the step with index ${String(index)} ${String(step)}; earlier events name it ${String(id)}`;
    if (id !== step) replay.contradiction ??= { seq, problem };
  }
  const isNew = type === 'approval.requested' || approvalId === undefined;
  if (!isNew && !replay.approvals.has(approvalId)) {
    replay.contradiction ??= { seq, problem: `names the approval ${String(approvalId)}, which was not requested` };
  }
}

export function stepOf({ steps }: Replay, { step: id, index }: RecordedEvent): RecordedStep {
  const known = steps.get(index);
  if (known) return known;
  const undoes = typeof index === 'number' && index >= UNDO_INDEX_OFFSET ? index - UNDO_INDEX_OFFSET : undefined;
  const step: RecordedStep = { fields: { id, index, undoes } };
  steps.set(index, step);
  return step;
}

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** In place, because a hostile bundle may have many. */
export function appended<Item>(list: unknown, item: Item): Item[] {
  const items: Item[] = Array.isArray(list) ? list : [];
  items.push(item);
  return items;
}

export const isRecord = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
