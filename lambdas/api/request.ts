import * as z from 'zod';
import { type HttpEvent, Problem, rawBody } from '../entry/http.ts';
import { CountersignError, type ErrorCode } from '../run/errors.ts';

const BODY_MAX_BYTES = 1024 * 1024;

export function parseQuery<Schema extends z.ZodType>(schema: Schema, event: HttpEvent): z.output<Schema> {
  return parsed(schema, event.queryStringParameters ?? {});
}

/** A body that must be JSON of this shape; none at all counts as an empty object. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, event: HttpEvent): z.output<Schema> {
  const body = rawBody(event);
  if (body.length > BODY_MAX_BYTES) throw new Problem(413, 'TOO_LARGE', `at most ${BODY_MAX_BYTES} bytes are taken`);
  return parsed(schema, parseJson(body.toString('utf8')));
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new Problem(400, 'BAD_REQUEST', z.prettifyError(result.error));
}

function parseJson(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Problem(400, 'BAD_REQUEST', 'the body is not JSON');
  }
}

const STATUS_OF: Partial<Record<ErrorCode, number>> = {
  INPUT_INVALID: 400,
  APPROVAL_SELF: 403,
  APPROVAL_FORBIDDEN: 403,
  POLICY_DENIED: 403,
  NOT_FOUND: 404,
  RUN_TERMINAL_STATE: 409,
  RUN_INVALID_TRANSITION: 409,
  APPROVAL_CLOSED: 409,
  APPROVAL_STALE: 409,
  CAP_EXCEEDED: 409,
  LEASE_LOST: 409,
};

/** The domain's refusals are answers to the caller; anything else is a fault of ours. */
export async function answering<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const status = error instanceof CountersignError && STATUS_OF[error.code];
    if (status) throw new Problem(status, error.code, error.message);
    throw error;
  }
}
