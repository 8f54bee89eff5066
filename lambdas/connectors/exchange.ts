import type * as z from 'zod';
import { tryParseJson } from '../entry/parse-json.ts';
import type { CountersignError } from '../run/errors.ts';
import { allowedMs, traceHeader } from './attempt-deadline.ts';
import {
  asRead,
  errorForStatus,
  FIRST_CLIENT_ERROR,
  FIRST_REDIRECT,
  type Head,
  notSent,
  notSentReason,
  OutcomeUnknown,
  ResponseTooLarge,
  TargetRefused,
} from './target-errors.ts';

/** Longer than a healthy target takes, and short enough that a lease outlasts several calls. */
export const EXCHANGE_TIMEOUT_MS = 10_000;

/**
 * The limit of a decompressed response. The largest expected response is a page of a hundred GitHub comments of 64 KiB;
 * thirty steps that read this much at the same time fit into a worker's memory.
 */
export const RESPONSE_MAX_BYTES = 8 * 1024 * 1024;

/** GitHub requires a product name, and it identifies Countersign in the logs of every target. */
const USER_AGENT = 'Countersign';
/** Shorter parts of a credential are not secret; redacting them would garble ordinary words. */
const SECRET_MIN_CHARACTERS = 8;

export interface Exchange<Body> {
  system: string;
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON, or as a form if it is URLSearchParams. */
  body?: unknown;
  /** Secrets in the body, to be redacted from the response; the header `authorization` always is. */
  secrets?: readonly string[];
  /** True for a POST that changes nothing: it requests a token or asks a model. */
  readOnly?: true;
  timeoutMs?: number;
  /** The error for a status of 400 or above, where the target has its own codes. They may be in the response body. */
  errorFor?: (head: Head, body: string) => CountersignError | undefined;
  /** `undefined` is an empty body. A 2xx with any other body leaves the outcome unknown. */
  responseSchema: z.ZodType<Body>;
}

interface Response2xx<Body> extends Head {
  body: Body;
}

/** Joins the address of a connection, which may end with a slash, and a path. */
export const urlAt = (baseUrl: string, path: string): string => `${baseUrl.replace(/\/+$/, '')}${path}`;

/**
 * Sends one request, without retries or redirects. Errors say whether the target can have acted; their messages never
 * quote the target's text.
 */
export function exchange<Body>(request: Exchange<Body>): Promise<Response2xx<Body>> {
  const attempted = attempt(request);
  return request.method === 'GET' || request.readOnly ? asRead(attempted) : attempted;
}

async function attempt<Body>(request: Exchange<Body>): Promise<Response2xx<Body>> {
  const { system } = request;
  const response = await send(request);
  const { status } = response;
  const head: Head = { status, header: (name) => response.headers.get(name) };
  if (status >= FIRST_CLIENT_ERROR) {
    const body = request.errorFor ? await readText(system, response).catch(() => '') : '';
    await response.body?.cancel().catch(() => undefined);
    throw request.errorFor?.(head, body) ?? errorForStatus(system, head);
  }
  if (status >= FIRST_REDIRECT) {
    await response.body?.cancel().catch(() => undefined);
    throw new TargetRefused(redirected(system, status), { retryable: false, status });
  }
  const { authorization = '' } = request.headers;
  const text = redactSecrets(await readText(system, response), [authorization, ...(request.secrets ?? [])]);
  const parsed = request.responseSchema.safeParse(text === '' ? undefined : parseBody(system, text));
  if (parsed.success) return { ...head, body: parsed.data };
  throw new OutcomeUnknown(`${system} sent a response (${status}) that does not match its API`, parsed.error);
}

/** Reads in pieces and stops at the limit: neither a wrong Content-Length nor compressed zeros can fill the memory. */
async function readText(system: string, { body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const piece of body ?? []) {
      size += piece.length;
      // Leaving the loop closes the connection.
      if (size > RESPONSE_MAX_BYTES) throw new ResponseTooLarge(system, RESPONSE_MAX_BYTES);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof ResponseTooLarge
      ? error
      : new OutcomeUnknown(`${system} sent an incomplete response`, error);
  }
  return Buffer.concat(pieces).toString('utf8');
}

async function send(request: Exchange<unknown>): Promise<Response> {
  const { system, method, url, headers, body, readOnly } = request;
  const writes = method !== 'GET' && !readOnly;
  const timeoutMs = allowedMs({ system, writes, timeoutMs: request.timeoutMs ?? EXCHANGE_TIMEOUT_MS });
  const form = body instanceof URLSearchParams;
  const contentType = form ? 'application/x-www-form-urlencoded' : 'application/json';
  try {
    return await fetch(url, {
      method,
      headers: {
        ...{ accept: 'application/json', 'content-type': contentType, 'user-agent': USER_AGENT },
        ...traceHeader(),
        ...headers,
      },
      body: form || body === undefined ? body : JSON.stringify(body),
      // The credential is for this address only, so redirects are not followed.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    const { cause } = error as Error;
    throw notSentReason(cause) ? notSent(system, cause) : new OutcomeUnknown(`${system} did not respond`, error);
  }
}

/** None of these systems redirects after a write. The message does not quote the location, which may echo the request. */
const redirected = (system: string, status: number) =>
  `${system} redirected (${status}); redirects are not followed. The record or the address has moved: use its new name, or correct the address of the connection`;

function parseBody(system: string, text: string): unknown {
  const value = tryParseJson(text);
  if (value === undefined) throw new OutcomeUnknown(`${system} sent a response that is not JSON`);
  return value;
}

/** Some targets echo the request: replaces these secrets in a text, in every form in which they may be echoed. */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .flatMap(echoedForms)
    .filter((form) => form.length >= SECRET_MIN_CHARACTERS)
    .reduce((rest, form) => rest.replaceAll(form, '[secret]'), text);
}

/** With and without `Bearer`, the decoded content of `Basic`, and each of them as JSON writes it. */
function echoedForms(secret: string): string[] {
  const [scheme = '', ...rest] = secret.split(' ');
  const decoded = scheme === 'Basic' ? Buffer.from(rest.join(' '), 'base64').toString() : '';
  const password = decoded.slice(decoded.indexOf(':') + 1);
  return [secret, ...rest, decoded, password].flatMap((part) => [part, JSON.stringify(part).slice(1, -1)]);
}
