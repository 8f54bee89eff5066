/** Every code a caller, an operator or a test may meet. Decide by code, never by message. */
export type ErrorCode =
  | 'RUN_INVALID_TRANSITION'
  | 'RUN_TERMINAL_STATE'
  | 'RUN_TIMED_OUT'
  | 'RUN_ORPHANED'
  | 'WAIT_TIMED_OUT'
  | 'CAP_EXCEEDED'
  | 'IDEMPOTENCY_CONFLICT'
  | 'LEASE_LOST'
  | 'OUTCOME_UNKNOWN'
  | 'DRIFTED'
  | 'POLICY_DENIED'
  | 'POLICY_ERROR'
  | 'APPROVAL_EXPIRED'
  | 'APPROVAL_REJECTED'
  | 'APPROVAL_CLOSED'
  | 'APPROVAL_STALE'
  | 'APPROVAL_SELF'
  | 'APPROVAL_FORBIDDEN'
  | 'ENRICHMENT_FAILED'
  | 'EXPRESSION_FAILED'
  | 'INPUT_INVALID'
  | 'OUTPUT_TOO_LARGE'
  | 'CONNECTION_MISSING'
  | 'TARGET_REFUSED'
  | 'RETRIES_EXHAUSTED'
  | 'WORKFLOW_INVALID'
  | 'CHAIN_BROKEN'
  | 'NOT_FOUND';

/** The root of the domain's errors: a code to decide by, a sentence that says what to do, and the cause. */
export class CountersignError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = code;
    this.code = code;
  }
}

/** An error as it is kept on a run or a step: never a stack, never a payload. */
export interface RecordedError {
  code: ErrorCode;
  message: string;
}

/** Targets echo what they were sent; a kept message is bounded so that no payload travels in it. */
const RECORDED_MESSAGE_MAX_CHARACTERS = 500;

export function recordedError(code: ErrorCode, message: string): RecordedError {
  return { code, message: message.slice(0, RECORDED_MESSAGE_MAX_CHARACTERS).toWellFormed() };
}
