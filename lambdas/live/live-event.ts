import type { CommandRef, OutputStream, StoredChunk } from '../agents/output.ts';
import { type ExecutionEvent, executionEventsOf } from '../api/runs/execution-vocabulary.ts';
import { stepIndexIn } from '../run/approval.ts';
import type { Commit } from '../run/commit.ts';
import type { CommitEvent } from '../run/events/events.ts';

/**
 * What the live feed sends: the events of commits and the output of commands, in the envelope of source 001, 3.2. Functions
 * and clients use this file, browsers too: a client that reads commits over the API makes the same events of them, with the
 * same ids.
 */
interface Envelope {
  /** `{run}:{commit}:{index}`, for output `{run}:{step index}.{lease}:{chunk}`. The same event always has the same id. */
  id: string;
  session_id: string;
  run_id: string;
  /** From 1. Null if the event is not about one step. */
  step_number: number | null;
  timestamp: string;
}

export interface CommitLiveEvent extends Envelope {
  /** The name in source 001. An event that it does not have has our name. */
  event: Exclude<ExecutionEvent, 'execution.step.output'> | CommitEvent['type'];
  /** The event as the commit has it. */
  payload: CommitEvent;
  /** `of`: how many of these the commit has. `event_index`: which event of the commit it is; some have two names. */
  meta: { commit: number; index: number; of: number; event_index: number } & Partial<WorkerMeta>;
}

interface WorkerMeta {
  worker_id: string;
  environment: string;
  sandbox_profile: string;
}

export interface OutputLiveEvent extends Envelope {
  event: 'execution.step.output';
  payload: { stream_seq: number; chunk_type: OutputStream; data: string };
  meta: { step_index: number; lease_version: number };
}

export type LiveEvent = CommitLiveEvent | OutputLiveEvent;

export const isOutput = (event: LiveEvent): event is OutputLiveEvent => event.event === 'execution.step.output';

/** One event for each name: the end of a rollback, for example, has two. */
export function eventsOf(runId: string, commit: Pick<Commit, 'seq' | 'at' | 'events'>): CommitLiveEvent[] {
  const named = commit.events.flatMap((payload, event_index) =>
    namesOf(payload).map((event) => ({ event, payload, event_index })),
  );
  return named.map(({ event, payload, event_index }, index) => ({
    id: eventId(runId, commit.seq, index),
    event,
    session_id: runId,
    run_id: runId,
    step_number: stepNumberOf(payload),
    timestamp: commit.at,
    payload,
    meta: { commit: commit.seq, index, of: named.length, event_index, ...workerOf(payload) },
  }));
}

/** Events of approvals name the approval, whose id has the step. */
function stepNumberOf(payload: CommitEvent): number | null {
  if ('index' in payload && payload.index !== undefined) return payload.index + 1;
  return 'approvalId' in payload && payload.approvalId !== undefined ? stepIndexIn(payload.approvalId) + 1 : null;
}

function namesOf(payload: CommitEvent): CommitLiveEvent['event'][] {
  const names = executionEventsOf(payload) as CommitLiveEvent['event'][];
  return names.length > 0 ? names : [payload.type];
}

const workerOf = (payload: CommitEvent): Partial<WorkerMeta> =>
  payload.type === 'step.assigned'
    ? { worker_id: payload.agent, environment: payload.environment, sandbox_profile: payload.profile }
    : {};

export function outputEventOf(
  { runId, stepIndex, leaseVersion }: Omit<CommandRef, 'tenant'>,
  { seq, stream, at, data }: StoredChunk,
): OutputLiveEvent {
  return {
    id: outputEventId(runId, { stepIndex, leaseVersion }, seq),
    event: 'execution.step.output',
    session_id: runId,
    run_id: runId,
    step_number: stepIndex + 1,
    timestamp: at,
    payload: { stream_seq: seq, chunk_type: stream, data },
    meta: { step_index: stepIndex, lease_version: leaseVersion },
  };
}

export const eventId = (runId: string, commit: number, index: number): string => `${runId}:${commit}:${index}`;
const outputEventId = (runId: string, { stepIndex, leaseVersion }: Command, chunk: number): string =>
  `${runId}:${stepIndex}.${leaseVersion}:${chunk}`;

type Command = Pick<CommandRef, 'stepIndex' | 'leaseVersion'>;
export type ParsedEventId =
  | { kind: 'commit'; runId: string; commit: number; index: number }
  | { kind: 'output'; runId: string; command: Command; chunk: number };

/** Undefined if it is no event id. */
export function parseEventId(id: string): ParsedEventId | undefined {
  const [, runId = '', step, place, index] = /^([^:#]{1,100}):(?:(\d{1,4})\.)?(\d{1,8}):(\d{1,8})$/.exec(id) ?? [];
  if (runId === '') return undefined;
  if (step === undefined) return { kind: 'commit', runId, commit: Number(place), index: Number(index) };
  const command = { stepIndex: Number(step), leaseVersion: Number(place) };
  return { kind: 'output', runId, command, chunk: Number(index) };
}
