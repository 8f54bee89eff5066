import * as z from 'zod';
import { type HttpAnswer, type HttpEvent, json, Problem, rawBody } from '../entry/http.ts';
import { CountersignError, type ErrorCode } from '../run/errors.ts';
import { type Command, controlRun } from '../worker/control-run.ts';
import type { Worker } from '../worker/worker.ts';
import { assertMayControl, callerOf } from './caller.ts';
import { COMMANDS } from './control-commands.ts';
import { runSummary } from './run-views.ts';

const BODY_MAX_BYTES = 1024 * 1024;

const STATUS_OF: Partial<Record<ErrorCode, number>> = {
  NOT_FOUND: 404,
  RUN_TERMINAL_STATE: 409,
  RUN_INVALID_TRANSITION: 409,
  CAP_EXCEEDED: 409,
  LEASE_LOST: 409,
};

/** `POST /api/v1/runs/{id}/{command}`: what an operator may ask of a run. */
export async function answerControl(worker: Omit<Worker, 'hasTime'>, event: HttpEvent): Promise<HttpAnswer> {
  const caller = callerOf(event);
  const runId = event.pathParameters?.id ?? '';
  const command = parseCommand(event);
  assertMayControl(caller);
  try {
    const { run } = await controlRun(worker, { tenant: caller.tenant, runId }, command, caller.person);
    return json(200, runSummary(run));
  } catch (error) {
    const status = error instanceof CountersignError && STATUS_OF[error.code];
    if (status) throw new Problem(status, error.code, error.message);
    throw error;
  }
}

function parseCommand(event: HttpEvent): Command {
  const name = event.routeKey.split('/').at(-1) ?? '';
  const schema = COMMANDS[name];
  if (!schema) throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  const body = rawBody(event);
  if (body.length > BODY_MAX_BYTES) throw new Problem(413, 'TOO_LARGE', `at most ${BODY_MAX_BYTES} bytes are taken`);
  const parsed = schema.safeParse(parseJson(body.toString('utf8')));
  if (!parsed.success) throw new Problem(400, 'BAD_REQUEST', z.prettifyError(parsed.error));
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Problem(400, 'BAD_REQUEST', 'the body is not JSON');
  }
}
