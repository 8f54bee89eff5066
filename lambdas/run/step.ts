import type { PolicyDecision, PolicyRequest } from '../policy/policy.ts';
import type { RecordedError } from './errors.ts';
import type { By } from './events/run-events.ts';
import type { TouchedState } from './receipt.ts';
import type { SessionFacts } from './session.ts';
import type { FlagName } from './settings/flags.ts';

export const STEP_SCHEMA_VERSION = 1;

/** The step that undoes step n has the index n + this. No workflow has that many steps. */
export const UNDO_INDEX_OFFSET = 5000;

/** Limits the rows of a run and the inputs of later steps. */
export const STEP_OUTPUT_MAX_BYTES = 64 * 1024;

export interface StepFacts {
  schemaVersion: typeof STEP_SCHEMA_VERSION;
  index: number;
  id: string;
  tool: string;
  /** The fencing number: grows with every claim. All commits of the claiming worker require it. */
  leaseVersion: number;
  attempt: number;
  /** Rows of older versions do not have it. */
  startedAt?: string;
  updatedAt: string;
  /** The last request to policy, and its decision. */
  governed?: Governed;
  /** The index of the step that this one undoes. */
  undoes?: number;
  /** People who requested a retry after it failed: they are makers of that attempt. */
  retriedBy?: string[];
  /** Calls of the step that were made before a person retried it: the next one is another write, with a key of its own. */
  earlierCalls?: number;
  /** The state that the target must have for the write. Another state is a later change by somebody else. */
  expects?: TouchedState;
  /**
   * A request for its write was sent and refused, and no approval was requested since: sending it again is a retry. The
   * receipt also says so, but another run with the identical write may have replaced it.
   */
  sent?: true;
  /** The target asked not to be called before this time. */
  notBefore?: string;
  /** The agent that acknowledged the assignment of its last claim: it runs the command, or has run it. */
  assigned?: AssignedStep;
  /** Assignments of this step that no agent acknowledged, since the last one that an agent did. */
  unassigned?: UnassignedStep;
  /** The session that the step started. */
  session?: SessionFacts;
}

export interface AssignedStep {
  agentId: string;
  agentName: string;
  assignmentId: string;
  profile: string;
  /** The SHA-256 of the signed statement. */
  statementHash: string;
  /** The process of the agent. Another one with the same identity may neither renew nor repeat it. */
  bootId: string;
  at: string;
}

export interface UnassignedStep {
  count: number;
  /** The agents that were tried. Others are preferred. */
  agents: string[];
}

export interface Governed {
  request: PolicyRequest;
  decision: PolicyDecision;
  /** The approval that allows the write. */
  approvalId?: string;
  /** An earlier approval that no longer applies. The next one must be at least as strict. */
  askedBefore?: string;
}

/** A new decision of policy. The earlier approval no longer counts for it, but the next gate requires no less. */
export const withoutApproval = (
  { request, decision }: Pick<Governed, 'request' | 'decision'>,
  { approvalId, askedBefore = approvalId }: Partial<Governed> = {},
): Governed => ({ request, decision, ...(askedBefore !== undefined && { askedBefore }) });

/** The input of a step is fixed by the first claim, so that a retry makes the same write. */
export interface Prepared {
  input: unknown;
  /** The receipt with the intent. */
  receiptKey: string;
}

export interface Lease {
  owner: string;
  expiresAt: string;
}

/** A step waits for a time, for a signal until a time, or for the completion of its session until a time. */
export type Awaited =
  | { kind: 'time'; until: string }
  | { kind: 'signal'; event: string; until: string }
  /** `lookAt`: when the worker finds out whether the session still works. */
  | { kind: 'session'; until: string; lookAt: string };

export type RunningStep = StepFacts & Prepared & { status: 'running'; lease: Lease };
export type RetryableStep = StepFacts &
  Partial<Prepared> & {
    status: 'failed_retryable';
    retryAt: string;
    error: RecordedError;
    /** The step waits until this flag is on. It asks again without a commit, so `retryAt` may have passed. */
    flag?: FlagName;
    /** The run was stopped while the step was performed, so its last lease has no outcome. */
    stopped?: true;
  };
export type WaitingApprovalStep = StepFacts & {
  status: 'waiting_approval';
  approvalId: string;
  expiresAt: string;
  /** The input of the write; an `approval` step writes nothing. */
  input?: unknown;
};
/** Approved. The next worker that processes the run starts it. */
export type ReadyStep = StepFacts & { status: 'ready'; input: unknown; by?: By };
/** `receiptKey`: the receipt of the start of its session. */
export type WaitingExternalStep = StepFacts & { status: 'waiting_external'; awaits: Awaited; receiptKey?: string };
/** When it ended, and how long after its start. */
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
    /** The earlier step of the run that made the identical write. The rollback undoes that step. */
    madeByStep?: number;
    /** The run that a replay took this output from. */
    copiedFrom?: string;
  };
export type FailedStep = StepFacts &
  Ended &
  Partial<Prepared> & {
    status: 'failed_terminal';
    error: RecordedError;
    /** Who caused the failure, if not the target: a person, policy or a timeout. */
    by?: By;
    /** Its write was made anyway, and the rollback undoes it. */
    wrote?: true;
    /** A command that may have changed something before it failed or was lost, and says how to undo it. */
    mayHaveWritten?: true;
  };
/** Another step undid its write. */
type RolledBackStep = StepFacts &
  Ended & {
    status: 'rolled_back';
    output: unknown;
    receiptKey: string;
  };
type CanceledStep = StepFacts & Partial<Prepared> & Ended & { status: 'canceled' };

/** A step that no commit has reached is pending and has no row. */
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

/** The step has ended. Only a person can start it again. */
export function isFinished({ status }: Step): boolean {
  return FINISHED.includes(status);
}

/** The flag that the step waits for. */
export const flagOf = (step: Step | undefined): FlagName | undefined =>
  step?.status === 'failed_retryable' ? step.flag : undefined;

/** An owner has to switch a flag on before the run continues: that time does not count against its deadline. */
export const waitsForFlag = ({ status }: { status: string }, steps: Steps): boolean =>
  status === 'failed_retryable' && [...steps.values()].some((step) => flagOf(step) !== undefined);

/** A step before its first attempt, or before a new start that keeps its lease version. */
export function newStep(
  index: number,
  { id, tool }: Pick<StepFacts, 'id' | 'tool'>,
  at: string,
  { leaseVersion = 0, attempt = 0, startedAt = at, retriedBy, earlierCalls }: Partial<StepFacts> = {},
): StepFacts {
  return {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id,
    tool,
    leaseVersion,
    attempt,
    startedAt,
    updatedAt: at,
    ...(retriedBy && { retriedBy }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
}

/** The fields that all states of a step have. */
export function factsOf(step: StepFacts, at: string): StepFacts {
  const { schemaVersion, index, id, tool, leaseVersion, attempt, startedAt, governed, undoes, retriedBy } = step;
  const { expects, sent, notBefore, assigned, unassigned, session, earlierCalls } = step;
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
    ...(sent && { sent }),
    ...(notBefore !== undefined && { notBefore }),
    ...(assigned && { assigned }),
    ...(unassigned && { unassigned }),
    ...(session && { session }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
}

/** For the next command after one whose agent was lost: another agent is preferred. */
export function lostAgentIn(step: Step): Pick<StepFacts, 'unassigned'> {
  const isLost = 'error' in step && step.error.code === 'AGENT_LOST';
  return isLost && step.assigned ? { unassigned: { count: 0, agents: [step.assigned.agentId] } } : {};
}
