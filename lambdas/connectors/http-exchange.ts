import type * as z from 'zod';
import { wellFormed } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';

/** Longer than a healthy target ever takes, and short enough that a lease outlives several calls. */
export const EXCHANGE_TIMEOUT_MS = 10_000;

const FIRST_SERVER_ERROR = 500;
const FORBIDDEN = 403;
const TOO_MANY_REQUESTS = 429;
/** A target that wants us to slow down without saying for how long gets at least this. */
const RATE_LIMIT_PAUSE_MS = 60_000;

/** The target certainly did not do it. Retryable if asking again later may help. */
export class TargetRefused extends CountersignError {
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  constructor(message: string, retry: { retryable: boolean; retryAfterMs?: number; cause?: unknown }) {
    super('TARGET_REFUSED', message, { cause: retry.cause });
    this.retryable = retry.retryable;
    this.retryAfterMs = retry.retryAfterMs;
  }
}

/** The target may or may not have done it. Only a repeat that is harmless, a probe or a person can tell. */
export class OutcomeUnknown extends CountersignError {
  constructor(message: string, cause?: unknown) {
    super('OUTCOME_UNKNOWN', message, { cause });
  }
}

export interface Exchange<Answer> {
  system: string;
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  body?: unknown;
  /** What the answer must look like; anything else on a 2xx leaves the outcome unknown. */
  answer: z.ZodType<Answer>;
}

/** One request, no hidden retries. Failures say whether the target can have acted; messages never quote its text. */
export async function exchange<Answer>(request: Exchange<Answer>): Promise<{ status: number; answer: Answer }> {
  try {
    return await attempt(request);
  } catch (error) {
    // A read that got no answer changed nothing: it may simply be asked again.
    if (request.method === 'GET' && error instanceof OutcomeUnknown) {
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
  const parsed = request.answer.safeParse(parseJson(request.system, text));
  if (!parsed.success) {
    throw new OutcomeUnknown(
      `${request.system} answered ${response.status} with a body of another shape`,
      parsed.error,
    );
  }
  return { status: response.status, answer: parsed.data };
}

async function send({ system, method, url, headers, body }: Exchange<unknown>): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(EXCHANGE_TIMEOUT_MS),
    });
  } catch (error) {
    if (neverConnected(error))
      throw new TargetRefused(`${system} could not be reached`, { retryable: true, cause: error });
    throw new OutcomeUnknown(`${system} did not answer`, error);
  }
}

function refusal(system: string, response: Response): CountersignError {
  const { status, headers } = response;
  const retryAfterMs = Number(headers.get('retry-after')) * 1000;
  // GitHub says "slow down" with 403 too, and then says until when or that nothing is left.
  const slowDown = status === FORBIDDEN && (retryAfterMs > 0 || headers.get('x-ratelimit-remaining') === '0');
  if (status === TOO_MANY_REQUESTS || slowDown) {
    return new TargetRefused(`${system} asked to slow down (${status})`, {
      retryable: true,
      retryAfterMs: retryAfterMs > 0 ? retryAfterMs : RATE_LIMIT_PAUSE_MS,
    });
  }
  if (status >= FIRST_SERVER_ERROR) return new OutcomeUnknown(`${system} failed (${status})`);
  return new TargetRefused(`${system} refused (${status})`, { retryable: false });
}

function parseJson(system: string, text: string): unknown {
  try {
    return wellFormed(JSON.parse(text));
  } catch (error) {
    throw new OutcomeUnknown(`${system} answered with something that is not JSON`, error);
  }
}

const BEFORE_CONNECTION = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

function neverConnected(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined;
  return typeof cause?.code === 'string' && BEFORE_CONNECTION.has(cause.code);
}
