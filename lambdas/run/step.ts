import type { RecordedError } from './errors.ts';

export const STEP_SCHEMA_VERSION = 1;

/** Everything a step hands on must fit beside the run's other rows and in a later step's input. */
export const STEP_OUTPUT_MAX_BYTES = 64 * 1024;

interface StepFacts {
  schemaVersion: typeof STEP_SCHEMA_VERSION;
  index: number;
  id: string;
  tool: string;
  /** The fencing number: grows with every claim, and every later write of the claimant is conditioned on it. */
  leaseVersion: number;
  attempt: number;
  updatedAt: string;
}

/** A step's input is fixed when it is first claimed, so that a repeat repeats the same write. */
interface Prepared {
  input: unknown;
  /** The receipt that holds the intent; absent for a step that touches nothing outside. */
  receiptKey?: string;
}

export interface Lease {
  owner: string;
  expiresAt: string;
}

export type ReadyStep = StepFacts & { status: 'ready' };
export type RunningStep = StepFacts & Prepared & { status: 'running'; lease: Lease; startedAt: string };
export type WaitingApprovalStep = StepFacts & { status: 'waiting_approval'; approvalId: string };
export type RetryableStep = StepFacts &
  Prepared & { status: 'failed_retryable'; retryAt: string; error: RecordedError };
export type SucceededStep = StepFacts & {
  status: 'succeeded';
  output: unknown;
  receiptKey?: string;
  skipped?: true;
  completedAt: string;
};
export type FailedStep = StepFacts & {
  status: 'failed_terminal';
  error: RecordedError;
  receiptKey?: string;
  completedAt: string;
};

/** A step that no commit has reached yet is pending and has no row: its definition in the workflow says it all. */
export type Step = ReadyStep | RunningStep | WaitingApprovalStep | RetryableStep | SucceededStep | FailedStep;

export function receiptKeyOf(step: Step): string | undefined {
  return 'receiptKey' in step ? step.receiptKey : undefined;
}
