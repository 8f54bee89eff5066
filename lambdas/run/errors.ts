/** Error codes of runs, steps and decisions. Code depends on the code of an error, never on its message. */
export const ERROR_CODES = [
  'RUN_INVALID_TRANSITION',
  'RUN_TERMINAL_STATE',
  'RUN_TIMED_OUT',
  'RUN_ORPHANED',
  'RUN_RESUME_FAILED',
  'ROLLBACK_INCOMPLETE',
  'LEASE_LOST',
  'WAIT_TIMED_OUT',
  'CAP_EXCEEDED',
  'IDEMPOTENCY_CONFLICT',
  'IDEMPOTENCY_EXPIRED',
  'CONFLICT',
  'OUTCOME_UNKNOWN',
  'DRIFTED',
  'PLAN_DRIFTED',
  'POLICY_DENIED',
  'POLICY_ERROR',
  'APPROVAL_REQUIRED',
  'APPROVAL_EXPIRED',
  'APPROVAL_REJECTED',
  'APPROVAL_CLOSED',
  'APPROVAL_STALE',
  'APPROVAL_SELF',
  'APPROVAL_FORBIDDEN',
  'ENRICHMENT_FAILED',
  'CONTEXT_MISSING',
  'EXPRESSION_FAILED',
  'EXPRESSION_LIMIT_EXCEEDED',
  'MISSING_VALUE',
  'INPUT_INVALID',
  'OUTPUT_TOO_LARGE',
  'ROW_TOO_LARGE',
  'KEY_TOO_LONG',
  'CONNECTION_MISSING',
  'CONNECTION_NOT_ALLOWED',
  'CONFIGURATION_UNRESOLVED',
  'TARGET_REFUSED',
  'RETRIES_EXHAUSTED',
  'ASSIGNMENT_FAILED',
  'AGENT_LOST',
  'AGENTS_DISABLED',
  'WRITES_DISABLED',
  'COMMAND_FAILED',
  'COMMAND_CANCELED',
  'COMMAND_NOT_ALLOWED',
  'SESSION_STARTING',
  'SESSION_CLOSED',
  'SESSION_CANCELED',
  'SESSION_LOST',
  'SESSION_TIMED_OUT',
  'SESSION_FAILED',
  'SESSION_NEEDS_HUMAN',
  'COMPLETION_MISMATCH',
  'ACTION_NOT_ALLOWED',
  'WORKFLOW_INVALID',
  'CHAIN_BROKEN',
  'RULES_BROKEN',
  'NOT_FOUND',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Further codes in responses of the API. RUNBOOK has a row for each code of both lists. */
export const REQUEST_CODES = [
  'BAD_REQUEST',
  'BAD_CURSOR',
  'UNAUTHORIZED',
  'SIGNATURE_INVALID',
  'SIGNATURE_EXPIRED',
  'REQUEST_REPLAYED',
  'AGENT_NOT_REGISTERED',
  'AGENT_IDENTITY_IN_USE',
  'ENROLMENT_TOKEN_INVALID',
  'FORBIDDEN',
  'AMBIGUOUS',
  'TOO_LARGE',
  'RATE_EXCEEDED',
  'AUTOMATION_INVALID',
  'CONFIGURATION_INVALID',
  'SCHEDULE_INVALID',
  'SOURCE_INVALID',
  'POLICY_INVALID',
  'PERSON_INVALID',
  'CONNECTION_INVALID',
  'INTERNAL',
] as const;
export type ProblemCode = ErrorCode | (typeof REQUEST_CODES)[number];

/** It is not known whether the write was made: only a person, or the rollback of a command, can settle that. */
export const isUnknownOutcome = (code: ErrorCode): boolean => code === 'OUTCOME_UNKNOWN' || code === 'AGENT_LOST';

/** All errors of the domain: a code, a message that says what to do, and the cause. */
export class CountersignError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = code;
    this.code = code;
  }
}

/** Errors that the caller can correct, with their HTTP status. All others are internal errors. */
const REFUSALS: Partial<Record<ErrorCode, number>> = {
  INPUT_INVALID: 400,
  IDEMPOTENCY_CONFLICT: 422,
  APPROVAL_SELF: 403,
  APPROVAL_FORBIDDEN: 403,
  POLICY_DENIED: 403,
  NOT_FOUND: 404,
  RUN_TERMINAL_STATE: 409,
  RUN_INVALID_TRANSITION: 409,
  RUN_RESUME_FAILED: 409,
  APPROVAL_REQUIRED: 409,
  APPROVAL_CLOSED: 409,
  APPROVAL_STALE: 409,
  CAP_EXCEEDED: 409,
  CONTEXT_MISSING: 409,
  CONFLICT: 409,
  PLAN_DRIFTED: 409,
  SESSION_STARTING: 409,
  SESSION_CLOSED: 409,
  COMPLETION_MISMATCH: 422,
  ACTION_NOT_ALLOWED: 403,
  ROW_TOO_LARGE: 413,
  KEY_TOO_LONG: 400,
  TARGET_REFUSED: 502,
};

/** The response for an error that the caller can correct; undefined for an internal error. */
export function refusalOf(error: unknown): { status: number; code: ErrorCode; message: string } | undefined {
  if (!(error instanceof CountersignError)) return undefined;
  const { code, message } = error;
  const status = REFUSALS[code];
  return status === undefined ? undefined : { status, code, message };
}

/** An error as a run or step stores it: no stack, no payload. */
export interface RecordedError {
  code: ErrorCode;
  message: string;
}

/** Targets repeat input in their errors. The limit prevents that a stored message contains a payload. */
const RECORDED_MESSAGE_MAX_CHARACTERS = 500;

export function recordedError(code: ErrorCode, message: string): RecordedError {
  return { code, message: message.slice(0, RECORDED_MESSAGE_MAX_CHARACTERS).toWellFormed() };
}
