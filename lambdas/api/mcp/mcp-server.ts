import {
  CLIENT_CAPABILITIES_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { Problem } from '../../entry/http.ts';
import { refusalOf } from '../../run/errors.ts';
import { controlRun } from '../../run-changes/control/control-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { Action } from '../contract/runs/actions.ts';
import type { McpCaller } from './mcp-caller.ts';
import { IDEMPOTENCY_FIELD } from './offered-tools.ts';
import { GET_RESULT, getResultTool } from './server-tools.ts';
import { INSTRUCTIONS, SERVER_CAPABILITIES, SERVER_NAME, TASKS_EXTENSION } from './texts.ts';
import { type ToolAccess, type ToolPorts, toolAccess } from './tool-access.ts';
import { isOpen, refusedResult, type ToolResult, task, taskHandle, toolResult } from './tool-result.ts';

export type McpPorts = ToolPorts &
  RunChanger & { pause: { sleep(ms: number): Promise<void> }; version: string; consoleUrl?: string | undefined };

/** Most allowed calls end within two seconds. In total less than the time of the function. */
const CHECKED_AFTER_MS = [150, 250, 400, 700, 1_000, 1_500, 2_000, 2_000, 2_000];

const IdempotencyKey = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'use 1 to 200 visible ASCII characters, no spaces');
const ResultInput = z.strictObject({ actionId: z.string().max(100) });
const TaskParams = z.looseObject({ taskId: z.string().max(100) });

/** The MCP server of one request. It keeps nothing: an action is stored like every run, and its id is all that a client needs. */
export function mcpServer(ports: McpPorts, who: McpCaller): Server {
  const { consoleUrl, log, version } = ports;
  const access = toolAccess(ports, who);
  const server = new Server(
    { name: SERVER_NAME, version },
    { capabilities: SERVER_CAPABILITIES, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler('tools/list', () =>
    orError(log, async () => ({ tools: [...(await access.tools()), getResultTool] })),
  );
  server.setRequestHandler('tools/call', ({ params }, context) =>
    orError(log, async () => {
      try {
        const action = await settled(ports, access, await proposedOrRead(access, params.name, params.arguments ?? {}));
        const isHandle = params.name !== GET_RESULT && isOpen(action) && hasTasks(context);
        return isHandle ? (taskHandle(action) as unknown as ToolResult) : toolResult(action, consoleUrl);
      } catch (error) {
        const refusal = refused(error);
        if (!refusal) throw error;
        return refusedResult(refusal.code, refusal.message);
      }
    }),
  );
  server.setRequestHandler('tasks/get', { params: TaskParams }, ({ taskId }) =>
    orError(log, async () => task(await access.action(taskId), consoleUrl)),
  );
  server.setRequestHandler('tasks/cancel', { params: TaskParams }, ({ taskId }) =>
    orError(log, async () => {
      // A caller, also a session, withdraws only what it has proposed itself.
      const { actionId, requestedBy } = await access.action(taskId);
      const { tenant } = 'caller' in who ? who.caller : who.session;
      await controlRun(ports, { tenant, runId: actionId }, { kind: 'cancel' }, requestedBy);
      return {};
    }),
  );
  return server;
}

function proposedOrRead(access: ToolAccess, name: string, input: Record<string, unknown>): Promise<Action> {
  if (name === GET_RESULT) return access.action(checked(ResultInput, input).actionId);
  const { [IDEMPOTENCY_FIELD]: given, ...rest } = input;
  const key = given === undefined ? undefined : checked(IdempotencyKey, given);
  return access.propose({ name, input: rest, key });
}

/** Waits a while for the result of a call. A call that waits for people does not end soon. */
async function settled({ pause }: McpPorts, access: ToolAccess, proposed: Action): Promise<Action> {
  let action = proposed;
  for (const ms of CHECKED_AFTER_MS) {
    if (action.status !== 'pending') return action;
    await pause.sleep(ms);
    action = await access.action(action.actionId);
  }
  return action;
}

/** Each request says what its client can do. A client of an earlier protocol version has no such extension. */
function hasTasks({ mcpReq }: ServerContext): boolean {
  const envelope: Record<string, unknown> = { ...mcpReq.envelope };
  const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] as { extensions?: Record<string, unknown> } | undefined;
  return capabilities?.extensions?.[TASKS_EXTENSION] !== undefined;
}

function checked<Value>(schema: z.ZodType<Value>, value: unknown): Value {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Problem(400, 'BAD_REQUEST', z.prettifyError(parsed.error));
}

const refused = (error: unknown): { code: string; message: string } | undefined =>
  error instanceof Problem ? error : refusalOf(error);

/** A refusal as an error of the protocol. Any other error is ours: its text stays in the log. */
async function orError<Value>(log: McpPorts['log'], handle: () => Promise<Value>): Promise<Value> {
  try {
    return await handle();
  } catch (error) {
    const refusal = refused(error);
    if (refusal) throw new ProtocolError(ProtocolErrorCode.InvalidParams, refusal.message);
    log.error('an unexpected error', { error });
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'an internal error occurred; try again later');
  }
}
