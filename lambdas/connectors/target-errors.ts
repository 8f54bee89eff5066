import { CountersignError } from '../run/errors.ts';
import type { Cost } from '../run/receipt.ts';
import { requestNotSent } from './attempt-deadline.ts';

export const FIRST_REDIRECT = 300;
export const FIRST_CLIENT_ERROR = 400;
export const UNAUTHORIZED = 401;
export const FORBIDDEN = 403;
export const NOT_FOUND = 404;
const TOO_MANY_REQUESTS = 429;
export const FIRST_SERVER_ERROR = 500;
/** The pause after a rate limit that does not say how long to wait. */
export const RATE_LIMIT_PAUSE_MS = 60_000;
/** A longer Retry-After is cut to this. */
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

const WHAT_TO_DO: Record<number, string> = {
  [UNAUTHORIZED]: ': check the credential of the connection',
  [FORBIDDEN]: ': check the permissions of the connection’s credential',
  [NOT_FOUND]: ': check that it exists and that the connection’s credential may read it',
};

/** The target did not do it. `retryable` if a later attempt may succeed. */
export class TargetRefused extends CountersignError {
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  /** The HTTP status, if there was a response. */
  readonly status: number | undefined;
  /** The cost of a model's response that could not be used. */
  readonly cost: Cost | undefined;
  constructor(
    message: string,
    how: { retryable: boolean; retryAfterMs?: number; status?: number; cost?: Cost; cause?: unknown },
  ) {
    super('TARGET_REFUSED', message, { cause: how.cause });
    this.retryable = how.retryable;
    this.retryAfterMs = how.retryAfterMs;
    this.status = how.status;
    this.cost = how.cost;
  }
}

/** The target may or may not have done it. A harmless repeat, a probe or a person must find out. */
export class OutcomeUnknown extends CountersignError {
  constructor(message: string, cause?: unknown) {
    super('OUTCOME_UNKNOWN', message, { cause });
  }
}

/** A write may have happened. A repeated read would get the same response. */
export class ResponseTooLarge extends OutcomeUnknown {
  constructor(system: string, maxBytes: number) {
    super(`${system} sent a response of more than ${maxBytes} bytes`);
  }
}

/** A read without a response changed nothing, so it may be repeated. */
export async function asRead<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) throw error;
    throw new TargetRefused(error.message, { retryable: !(error instanceof ResponseTooLarge), cause: error });
  }
}

/** For `catch`: the refusal of the target, if no later attempt can succeed. Other errors are thrown again. */
export function finalRefusal(error: unknown): TargetRefused {
  if (error instanceof TargetRefused && !error.retryable) return error;
  throw error;
}

/** For `catch`: undefined if the target refused with this status; other errors are thrown again. */
export const unlessStatus =
  (status: number) =>
  (error: unknown): undefined => {
    if (!(error instanceof TargetRefused) || error.status !== status) throw error;
  };

/** Status and headers of a response. Header names are in lower case. */
export interface Head {
  status: number;
  header(name: string): string | null | undefined;
}

/** The error for a response with status 400 or above. */
export function errorForStatus(system: string, { status, header }: Head): CountersignError {
  const noneRemaining = header('x-ratelimit-remaining') === '0';
  // GitHub also reports a rate limit as 403, with Retry-After or with no requests remaining.
  const isRateLimit = status === FORBIDDEN && (retryAfterMs(header) !== undefined || noneRemaining);
  if (status === TOO_MANY_REQUESTS || isRateLimit) {
    return rateLimited(system, status, retryAfterMs(header) ?? (noneRemaining ? untilResetMs(header) : undefined));
  }
  if (status >= FIRST_SERVER_ERROR) return new OutcomeUnknown(`${system} failed (${status})`);
  return new TargetRefused(`${system} refused (${status})${WHAT_TO_DO[status] ?? ''}`, { retryable: false, status });
}

export const rateLimited = (system: string, status: number, retryAfterMs: number = RATE_LIMIT_PAUSE_MS) =>
  new TargetRefused(`${system} limits the rate of requests (${status})`, { retryable: true, retryAfterMs, status });

export const retryAfterMs = (header: Head['header']): number | undefined =>
  pauseOf(Number(header('retry-after')) * 1000);

/** Both times come from the target's clock, so a wrong local clock does not matter. */
const untilResetMs = (header: Head['header']): number | undefined =>
  pauseOf(Number(header('x-ratelimit-reset')) * 1000 - Date.parse(header('date') ?? ''));

const pauseOf = (ms: number): number | undefined => (ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : undefined);

/** System calls that run before a request is sent. */
const CONNECTING_SYSCALLS: readonly unknown[] = ['getaddrinfo', 'connect'];
/** Codes of a failed connection, also where the error names no system call. */
const NEVER_CONNECTED: readonly unknown[] = ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'];
/** Codes of Node and OpenSSL for an invalid certificate, which is checked before the request is sent. */
const CERTIFICATE =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_|HOSTNAME_MISMATCH$|ERR_TLS_CERT_)/;

/**
 * Why the request was not sent; undefined if it may have been sent. The code alone is not enough: a host can also become
 * unreachable while it processes the request.
 */
export function notSentReason(cause: unknown): 'unreachable' | 'untrusted' | undefined {
  if (cause instanceof AggregateError && cause.errors.length > 0) {
    // One error for each address of the host.
    return cause.errors.every((each) => notSentReason(each) === 'unreachable') ? 'unreachable' : undefined;
  }
  const { code, syscall } = cause instanceof Error ? (cause as { code?: unknown; syscall?: unknown }) : {};
  if (CONNECTING_SYSCALLS.includes(syscall) || NEVER_CONNECTED.includes(code)) return 'unreachable';
  return typeof code === 'string' && CERTIFICATE.test(code) ? 'untrusted' : undefined;
}

/** The error for a request that was not sent. An unreachable host may come back; an invalid certificate needs a person. */
export function notSent(system: string, cause: unknown): TargetRefused {
  requestNotSent();
  const untrusted = notSentReason(cause) === 'untrusted';
  const message = untrusted
    ? `${system} has a certificate that is not trusted: check the address of the connection and the certificate`
    : `${system} could not be reached`;
  return new TargetRefused(message, { retryable: !untrusted, cause });
}
