import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import { type Command, controlRun } from '../worker/control-run.ts';
import type { Mover } from '../worker/worker.ts';
import { assertMayControl, callerOf } from './caller.ts';
import { COMMANDS } from './control-commands.ts';
import { answering, parseBody } from './request.ts';
import { runSummary } from './run-views.ts';

/** `POST /api/v1/runs/{id}/{command}`: what an operator may ask of a run. */
export async function answerControl(mover: Mover, event: HttpEvent): Promise<HttpAnswer> {
  const caller = callerOf(event);
  const runId = event.pathParameters?.id ?? '';
  const command = parseCommand(event);
  assertMayControl(caller);
  const { run } = await answering(() => controlRun(mover, { tenant: caller.tenant, runId }, command, caller.person));
  return json(200, runSummary(run));
}

function parseCommand(event: HttpEvent): Command {
  const schema = COMMANDS[event.routeKey.split('/').at(-1) ?? ''];
  if (!schema) throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  return parseBody(schema, event);
}
