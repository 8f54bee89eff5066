import type * as z from 'zod';
import { tryParseJson } from '../entry/parse-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { Cost } from '../run/receipt.ts';
import { allowedMs, neverLeft } from './attempt-deadline.ts';
import { beforeSending } from './before-sending.ts';
import { withoutSecrets } from './without-secrets.ts';

/** Longer than a healthy target ever takes, and short enough that a lease outlives several calls. */
export const EXCHANGE_TIMEOUT_MS = 10_000;

/**
 * As much of an answer as is read, unpacked. The longest that is asked for is a page of a hundred GitHub comments of 64 KiB;
 * thirty steps side by side that read so much still fit into a worker's memory.
 */
export const EXCHANGE_ANSWER_MAX_BYTES = 8 * 1024 * 1024;

/** GitHub asks for the product's name, and so may the administrator of any target who reads its log. */
const USER_AGENT = 'Countersign';

export const FIRST_REDIRECT = 300;
export const FIRST_REFUSAL = 400;
export const UNAUTHORIZED = 401;
export const FORBIDDEN = 403;
export const NOT_FOUND = 404;
const TOO_MANY_REQUESTS = 429;
export const FIRST_SERVER_ERROR = 500;
/** A target that wants us to slow down without saying for how long gets at least this. */
export const RATE_LIMIT_PAUSE_MS = 60_000;
/** However long a target asks us to wait, it is asked again within this. */
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

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
  /** Of an answer that was paid for and could not be used. */
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

/** The target may or may not have done it. Only a repeat that is harmless, a probe or a person can tell. */
export class OutcomeUnknown extends CountersignError {
  constructor(message: string, cause?: unknown) {
    super('OUTCOME_UNKNOWN', message, { cause });
  }
}

/** The target answered with more than is read. A write may have happened; a read would get the same answer again. */
export class AnswerTooLarge extends OutcomeUnknown {
  constructor(system: string) {
    super(`${system} answered with more than ${EXCHANGE_ANSWER_MAX_BYTES} bytes, which is not read`);
  }
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
  /** True for a POST that changes nothing: asking for a token, or a model. */
  onlyAsks?: true;
  timeoutMs?: number;
  /** What an answer of 400 and above means, where the target has words of its own for it; they may be in its body. */
  refusal?: (head: Head, body: string) => CountersignError | undefined;
  /** What the answer must look like, `undefined` if it has no body; anything else on a 2xx leaves the outcome unknown. */
  answer: z.ZodType<Answer>;
}

/** The beginning of an answer. Names of headers are in lower case. */
export interface Head {
  status: number;
  header(name: string): string | null | undefined;
}

interface Answered<Answer> extends Head {
  answer: Answer;
}

/** Where a connection and a path within it lead; many write its address with a slash at the end. */
export const urlAt = (baseUrl: string, path: string): string => `${baseUrl.replace(/\/+$/, '')}${path}`;

/** One request, no hidden retries, no redirects. Failures say whether the target can have acted; messages never quote its text. */
export function exchange<Answer>(request: Exchange<Answer>): Promise<Answered<Answer>> {
  const attempted = attempt(request);
  return request.method === 'GET' || request.onlyAsks ? asRead(attempted) : attempted;
}

/** A read that got no answer changed nothing: it may simply be asked again. */
export async function asRead<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) throw error;
    throw new TargetRefused(error.message, { retryable: !(error instanceof AnswerTooLarge), cause: error });
  }
}

async function attempt<Answer>(request: Exchange<Answer>): Promise<Answered<Answer>> {
  const { system } = request;
  const response = await send(request);
  const { status } = response;
  const head: Head = { status, header: (name) => response.headers.get(name) };
  if (status >= FIRST_REFUSAL) {
    // What a refusal means stands in its head; only some systems say more in the body.
    const body = request.refusal ? await readText(system, response).catch(() => '') : '';
    await response.body?.cancel().catch(() => undefined);
    throw request.refusal?.(head, body) ?? refusal(system, head);
  }
  if (status >= FIRST_REDIRECT) {
    await response.body?.cancel().catch(() => undefined);
    throw new TargetRefused(moved(system, status), { retryable: false, status });
  }
  const text = await readText(system, response);
  const { authorization = '' } = request.headers;
  const kept = withoutSecrets(text, [authorization, ...(request.secrets ?? [])]);
  const parsed = request.answer.safeParse(kept === '' ? undefined : jsonIn(system, kept));
  if (parsed.success) return { ...head, answer: parsed.data };
  throw new OutcomeUnknown(`${system} answered ${status} with a body of another shape`, parsed.error);
}

/** Read piece by piece and stopped at the bound: neither a length that lies nor packed zeros can fill the memory. */
async function readText(system: string, { body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const piece of body ?? []) {
      size += piece.length;
      // Leaving the loop ends the connection.
      if (size > EXCHANGE_ANSWER_MAX_BYTES) throw new AnswerTooLarge(system);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof AnswerTooLarge ? error : new OutcomeUnknown(`${system} cut its answer short`, error);
  }
  return Buffer.concat(pieces).toString('utf8');
}

async function send(request: Exchange<unknown>): Promise<Response> {
  const { system, method, url, headers, body, onlyAsks } = request;
  const writes = method !== 'GET' && !onlyAsks;
  const timeoutMs = allowedMs({ system, writes, timeoutMs: request.timeoutMs ?? EXCHANGE_TIMEOUT_MS });
  const form = body instanceof URLSearchParams;
  const contentType = form ? 'application/x-www-form-urlencoded' : 'application/json';
  try {
    return await fetch(url, {
      method,
      headers: { accept: 'application/json', 'content-type': contentType, 'user-agent': USER_AGENT, ...headers },
      body: form || body === undefined ? body : JSON.stringify(body),
      // The credential is for this address; where a redirect leads nobody vouches for.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    const { cause } = error as Error;
    throw beforeSending(cause) ? notSent(system, cause) : new OutcomeUnknown(`${system} did not answer`, error);
  }
}

/** The target has seen nothing of the request. Time mends what is out of reach, but no certificate. */
export function notSent(system: string, cause: unknown): TargetRefused {
  neverLeft();
  const untrusted = beforeSending(cause) === 'untrusted';
  const message = untrusted
    ? `${system} shows a certificate that cannot be trusted: check its address, and the certificate there`
    : `${system} could not be reached`;
  return new TargetRefused(message, { retryable: !untrusted, cause });
}

/** None of these systems redirects what it has done. Where it leads to is not quoted: it may echo what was sent. */
const moved = (system: string, status: number) =>
  `${system} redirected (${status}), which is never followed: what was asked for has moved. Use its new name, or correct the address of the connection`;

/** What an answer of 400 and above means: certainly not done, or perhaps. */
export function refusal(system: string, { status, header }: Head): CountersignError {
  const nothingLeft = header('x-ratelimit-remaining') === '0';
  // GitHub says "slow down" with 403 too, and then says for how long or that nothing is left.
  const slowDown = status === FORBIDDEN && (retryAfterMs(header) !== undefined || nothingLeft);
  if (status === TOO_MANY_REQUESTS || slowDown) {
    return slowedDown(system, status, retryAfterMs(header) ?? (nothingLeft ? untilResetMs(header) : undefined));
  }
  if (status >= FIRST_SERVER_ERROR) return new OutcomeUnknown(`${system} failed (${status})`);
  return new TargetRefused(`${system} refused (${status})${WHAT_TO_DO[status] ?? ''}`, { retryable: false, status });
}

export const slowedDown = (system: string, status: number, retryAfterMs: number = RATE_LIMIT_PAUSE_MS) =>
  new TargetRefused(`${system} asked to slow down (${status})`, { retryable: true, retryAfterMs, status });

export const retryAfterMs = (header: Head['header']): number | undefined =>
  pauseOf(Number(header('retry-after')) * 1000);

/** Both times are of the target's clock, so that it does not matter what ours says. */
const untilResetMs = (header: Head['header']): number | undefined =>
  pauseOf(Number(header('x-ratelimit-reset')) * 1000 - Date.parse(header('date') ?? ''));

const pauseOf = (ms: number): number | undefined => (ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : undefined);

function jsonIn(system: string, text: string): unknown {
  const value = tryParseJson(text);
  if (value === undefined) throw new OutcomeUnknown(`${system} answered with something that is not JSON`);
  return value;
}
