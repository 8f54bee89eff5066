import type { PolicyDecision, PolicyRequest } from '../policy/policy.ts';
import type { RecordedError } from './errors.ts';
import type { By } from './events/run-events.ts';
import type { TouchedState } from './receipt.ts';

export const STEP_SCHEMA_VERSION = 1;

/** Steps that take others back stand behind all steps a workflow can have, each at its step's distance. */
export const UNDO_INDEX_OFFSET = 5000;

/** Everything a step hands on must fit beside the run's other rows and in a later step's input. */
export const STEP_OUTPUT_MAX_BYTES = 64 * 1024;

export interface StepFacts {
  schemaVersion: typeof STEP_SCHEMA_VERSION;
  index: number;
  id: string;
  tool: string;
  /** The fencing number: grows with every claim, and every later write of the claimant is conditioned on it. */
  leaseVersion: number;
  attempt: number;
  /** When the run first came to it; rows of older versions do not have it. */
  startedAt?: string;
  updatedAt: string;
  /** What policy was asked about this step last, and what it said. */
  governed?: Governed;
  /** The index of the step that this one takes back. */
  undoes?: number;
  /** Who had it tried again after it had failed for good: they are makers of that attempt. */
  retriedBy?: string[];
  /** What must still be there for the write to be made; anything else is someone's later change. */
  expects?: TouchedState;
}

export interface Governed {
  request: PolicyRequest;
  decision: PolicyDecision;
  /** The approval it rests on. */
  approvalId?: string;
  /** The approval it was stopped for and does not rest on: whatever is tried next is asked about no less strictly. */
  askedBefore?: string;
}

/** A decision of policy. An approval of before no longer counts for it, but the next gate requires no less. */
export const withoutApproval = (
  { request, decision }: Pick<Governed, 'request' | 'decision'>,
  { approvalId, askedBefore = approvalId }: Partial<Governed> = {},
): Governed => ({ request, decision, ...(askedBefore !== undefined && { askedBefore }) });

/** A step's input is fixed when it is first claimed, so that a repeat repeats the same write. */
export interface Prepared {
  input: unknown;
  /** The receipt that holds the intent. */
  receiptKey: string;
}

export interface Lease {
  owner: string;
  expiresAt: string;
}

/** What a waiting step waits for: a point in time, or a signal from outside until then. */
export type Awaited = { kind: 'time'; until: string } | { kind: 'signal'; event: string; until: string };

export type RunningStep = StepFacts & Prepared & { status: 'running'; lease: Lease };
export type RetryableStep = StepFacts &
  Partial<Prepared> & { status: 'failed_retryable'; retryAt: string; error: RecordedError };
export type WaitingApprovalStep = StepFacts & {
  status: 'waiting_approval';
  approvalId: string;
  expiresAt: string;
  /** What is to be written once people agree; an `approval` step writes nothing. */
  input?: unknown;
};
/** People agreed; the next worker that looks performs it. */
export type ReadyStep = StepFacts & { status: 'ready'; input: unknown; by?: By };
export type WaitingExternalStep = StepFacts & { status: 'waiting_external'; awaits: Awaited };
/** When it ended, and how long after the run first came to it. */
export interface Ended {
  completedAt: string;
  durationMs?: number;
}

export function endedAt({ startedAt }: StepFacts, at: string): Ended {
  if (startedAt === undefined) return { completedAt: at };
  return { completedAt: at, durationMs: Math.max(0, Date.parse(at) - Date.parse(startedAt)) };
}

export type SucceededStep = StepFacts &
  Ended & {
    status: 'succeeded';
    output: unknown;
    receiptKey?: string;
    skipped?: true;
    /** An earlier step of the run had made the identical write: it is that step's to take back. */
    madeByStep?: number;
  };
export type FailedStep = StepFacts &
  Ended &
  Partial<Prepared> & {
    status: 'failed_terminal';
    error: RecordedError;
    /** Whose doing it is, where it is not the target's: a person's, policy's, or time's. */
    by?: By;
    /** Its write was made all the same, and is taken back like any other. */
    wrote?: true;
  };
/** Its write was taken back by another step. */
type RolledBackStep = StepFacts &
  Ended & {
    status: 'rolled_back';
    output: unknown;
    receiptKey: string;
  };
type CanceledStep = StepFacts & Partial<Prepared> & Ended & { status: 'canceled' };

/** A step that no commit has reached yet is pending and has no row: its definition in the workflow says it all. */
export type Step =
  | RunningStep
  | RetryableStep
  | WaitingApprovalStep
  | ReadyStep
  | WaitingExternalStep
  | SucceededStep
  | RolledBackStep
  | FailedStep
  | CanceledStep;

export type Steps = ReadonlyMap<number, Step>;

export function receiptKeyOf(step: Step): string | undefined {
  return 'receiptKey' in step ? step.receiptKey : undefined;
}

const FINISHED: readonly Step['status'][] = ['succeeded', 'failed_terminal', 'rolled_back', 'canceled'];

/** Nothing more will happen to it by itself. */
export function isFinished({ status }: Step): boolean {
  return FINISHED.includes(status);
}

/** A step before its first attempt, or before a new start that keeps its lease version. */
export function newStep(
  index: number,
  { id, tool }: Pick<StepFacts, 'id' | 'tool'>,
  at: string,
  { leaseVersion = 0, startedAt = at, retriedBy }: Partial<StepFacts> = {},
): StepFacts {
  return {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id,
    tool,
    leaseVersion,
    attempt: 0,
    startedAt,
    updatedAt: at,
    ...(retriedBy && { retriedBy }),
  };
}

/** What stays the same about a step whatever becomes of it. */
export function factsOf(step: StepFacts, at: string): StepFacts {
  const { schemaVersion, index, id, tool, leaseVersion, attempt, startedAt, governed, undoes, retriedBy, expects } =
    step;
  return {
    schemaVersion,
    index,
    id,
    tool,
    leaseVersion,
    attempt,
    ...(startedAt !== undefined && { startedAt }),
    updatedAt: at,
    ...(governed && { governed }),
    ...(undoes !== undefined && { undoes }),
    ...(retriedBy && { retriedBy }),
    ...(expects && { expects }),
  };
}
