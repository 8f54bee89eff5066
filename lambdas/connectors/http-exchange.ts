import type * as z from 'zod';
import { wellFormed } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { withoutSecrets } from './without-secrets.ts';

/** Longer than a healthy target ever takes, and short enough that a lease outlives several calls. */
export const EXCHANGE_TIMEOUT_MS = 10_000;

const FIRST_SERVER_ERROR = 500;
export const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
export const NOT_FOUND = 404;
const TOO_MANY_REQUESTS = 429;
/** A target that wants us to slow down without saying for how long gets at least this. */
export const RATE_LIMIT_PAUSE_MS = 60_000;

const WHAT_TO_DO: Record<number, string> = {
  [UNAUTHORIZED]: ': check the credential of the connection',
  [FORBIDDEN]: ': check what the credential of the connection may do',
  [NOT_FOUND]: ': check that it exists and that the credential of the connection may see it',
};

/** The target certainly did not do it. Retryable if asking again later may help. */
export class TargetRefused extends CountersignError {
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  /** Of the answer, where there was one. */
  readonly status: number | undefined;
  constructor(message: string, how: { retryable: boolean; retryAfterMs?: number; status?: number; cause?: unknown }) {
    super('TARGET_REFUSED', message, { cause: how.cause });
    this.retryable = how.retryable;
    this.retryAfterMs = how.retryAfterMs;
    this.status = how.status;
  }
}

/** The target may or may not have done it. Only a repeat that is harmless, a probe or a person can tell. */
export class OutcomeUnknown extends CountersignError {
  constructor(message: string, cause?: unknown) {
    super('OUTCOME_UNKNOWN', message, { cause });
  }
}

/** A 2xx that left part of what was asked undone: all of it undone is a refusal, some of it is neither done nor not done. */
export function undone(asked: readonly string[], left: readonly string[], message: string): CountersignError {
  return left.length === asked.length
    ? new TargetRefused(message, { retryable: false })
    : new OutcomeUnknown(`${message}; the rest was done`);
}

export interface Exchange<Answer> {
  system: string;
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  /** JSON, or a form. */
  body?: unknown;
  /** What the body holds of the credential; the header `authorization` is known for one. */
  secrets?: readonly string[];
  /** True for a POST that changes nothing: asking for a token. */
  onlyAsks?: true;
  /** What the answer must look like, `undefined` if it has no body; anything else on a 2xx leaves the outcome unknown. */
  answer: z.ZodType<Answer>;
}

/** One request, no hidden retries. Failures say whether the target can have acted; messages never quote its text. */
export async function exchange<Answer>(request: Exchange<Answer>): Promise<{ status: number; answer: Answer }> {
  try {
    return await attempt(request);
  } catch (error) {
    // A read that got no answer changed nothing: it may simply be asked again.
    if ((request.method === 'GET' || request.onlyAsks) && error instanceof OutcomeUnknown) {
      throw new TargetRefused(error.message, { retryable: true, cause: error });
    }
    throw error;
  }
}

async function attempt<Answer>(request: Exchange<Answer>): Promise<{ status: number; answer: Answer }> {
  const response = await send(request);
  const text = await response.text().catch((error: unknown) => {
    throw new OutcomeUnknown(`${request.system} cut its answer short`, error);
  });
  if (!response.ok) throw refusal(request.system, response);
  const { authorization = '' } = request.headers;
  const kept = withoutSecrets(text, [authorization, ...(request.secrets ?? [])]);
  const parsed = request.answer.safeParse(kept === '' ? undefined : parseJson(request.system, kept));
  if (!parsed.success) {
    throw new OutcomeUnknown(
      `${request.system} answered ${response.status} with a body of another shape`,
      parsed.error,
    );
  }
  return { status: response.status, answer: parsed.data };
}

async function send({ system, method, url, headers, body }: Exchange<unknown>): Promise<Response> {
  const form = body instanceof URLSearchParams;
  const contentType = form ? 'application/x-www-form-urlencoded' : 'application/json';
  try {
    return await fetch(url, {
      method,
      headers: { accept: 'application/json', 'content-type': contentType, ...headers },
      body: form || body === undefined ? body : JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(EXCHANGE_TIMEOUT_MS),
    });
  } catch (error) {
    if (neverConnected(error))
      throw new TargetRefused(`${system} could not be reached`, { retryable: true, cause: error });
    throw new OutcomeUnknown(`${system} did not answer`, error);
  }
}

function refusal(system: string, { status, headers }: Response): CountersignError {
  const nothingLeft = headers.get('x-ratelimit-remaining') === '0';
  // GitHub says "slow down" with 403 too, and then says for how long or that nothing is left.
  const slowDown = status === FORBIDDEN && (Number(headers.get('retry-after')) > 0 || nothingLeft);
  if (status === TOO_MANY_REQUESTS || slowDown) {
    return new TargetRefused(`${system} asked to slow down (${status})`, {
      retryable: true,
      retryAfterMs: pauseMs(headers, nothingLeft),
      status,
    });
  }
  if (status >= FIRST_SERVER_ERROR) return new OutcomeUnknown(`${system} failed (${status})`);
  return new TargetRefused(`${system} refused (${status})${WHAT_TO_DO[status] ?? ''}`, { retryable: false, status });
}

function pauseMs(headers: Headers, nothingLeft: boolean): number {
  const retryAfterMs = Number(headers.get('retry-after')) * 1000;
  if (retryAfterMs > 0) return retryAfterMs;
  // Both times are of the target's clock, so that it does not matter what ours says.
  const untilResetMs = Number(headers.get('x-ratelimit-reset')) * 1000 - Date.parse(headers.get('date') ?? '');
  return nothingLeft && untilResetMs > 0 ? untilResetMs : RATE_LIMIT_PAUSE_MS;
}

function parseJson(system: string, text: string): unknown {
  try {
    return wellFormed(JSON.parse(text));
  } catch {
    // The parser's own message quotes the text.
    throw new OutcomeUnknown(`${system} answered with something that is not JSON`);
  }
}

const BEFORE_CONNECTION = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

function neverConnected(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined;
  return typeof cause?.code === 'string' && BEFORE_CONNECTION.has(cause.code);
}
