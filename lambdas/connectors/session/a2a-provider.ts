import * as z from 'zod';
import { type Access, credentialOf } from '../connector.ts';
import { exchange, urlAt } from '../exchange.ts';
import { OutcomeUnknown, TargetRefused } from '../target-errors.ts';
import type { SessionProvider, SessionState } from './session-provider.ts';

const SYSTEM = 'the session provider';
const CARD_PATH = '/.well-known/agent-card.json';
const VERSION = '1.0';
const TASKS_SEARCHED = 10;

const Credential = z.lazy(() => z.object({ token: z.string().min(1) }));

/** The parts of an agent card (A2A 1.0) that we use. */
const AgentCard = z.lazy(() =>
  z.object({
    supportedInterfaces: z.array(
      z.object({ url: z.url(), protocolBinding: z.string(), protocolVersion: z.string().optional() }),
    ),
    capabilities: z.object({ pushNotifications: z.boolean().optional() }).optional(),
  }),
);

const Task = z.object({ id: z.string().min(1).max(500), status: z.object({ state: z.string() }).optional() });
const Failure = z.lazy(() => z.object({ code: z.int() }));
const response = <Result extends z.ZodType>(result: Result) =>
  z.union([z.object({ result }), z.object({ error: Failure })]);

/** Errors of JSON-RPC and A2A after which the provider has certainly done nothing, or knows no such task. */
const TASK_NOT_FOUND = -32001;
const TASK_NOT_CANCELABLE = -32002;
const REFUSED: readonly number[] = [-32700, -32600, -32601, -32602, -32003, -32004, -32005, -32007, -32008, -32009];

const REJECTED = 'TASK_STATE_REJECTED';
const STATES: Record<string, SessionState> = {
  TASK_STATE_COMPLETED: 'ended',
  TASK_STATE_CANCELED: 'ended',
  TASK_STATE_FAILED: 'dead',
  [REJECTED]: 'dead',
};

/**
 * Sessions of agents that speak A2A 1.0 over JSON-RPC. A task is a session, and its context has our key, so that a lost
 * response can be recovered. Messages are sent without waiting for the work: a function may run for seconds, a session for
 * hours. Sent with `exchange` and not with the SDK's client, so that each request is made once and an error says
 * whether the agent can have acted.
 */
export const a2aProvider: SessionProvider = {
  async start(access, url, contract, { text, data }) {
    const { sessionKey: contextId, promptKey: messageId, token, ownUrl, runId } = contract;
    const agent = await readAgentCard(access, url);
    const taskPushNotificationConfig = {
      url: urlAt(ownUrl, `/api/v1/runs/${runId}/heartbeat`),
      token: messageId,
      authentication: { scheme: 'Bearer', credentials: token },
    };
    const message = { messageId, contextId, role: 'ROLE_USER', parts: [{ text }, { data }] };
    // An agent that cannot notify may refuse the message because of the configuration.
    const configuration = { returnImmediately: true, ...(agent.canNotify && { taskPushNotificationConfig }) };
    const result = z.union([z.object({ task: Task }), z.object({ message: z.unknown() })]);
    const started = await call(agent, 'SendMessage', { message, configuration }, result);
    if (!('task' in started)) {
      throw new TargetRefused(`${SYSTEM} replied with a message and started no task`, { retryable: false });
    }
    const { id: sessionId, status } = started.task;
    if (status?.state !== REJECTED) return { sessionId };
    throw new TargetRefused(`${SYSTEM} rejected the task`, { retryable: false });
  },

  async find(access, url, contextId) {
    const { tasks } = await call(
      await readAgentCard(access, url),
      'ListTasks',
      { contextId, pageSize: TASKS_SEARCHED },
      z.object({ tasks: z.array(Task.extend({ contextId: z.string().optional() })).default([]) }),
      'reads',
    );
    // A provider may ignore the filter.
    const own = tasks.find((task) => task.contextId === contextId && task.status?.state !== REJECTED);
    return own && { sessionId: own.id };
  },

  async state(access, url, id) {
    const agent = await readAgentCard(access, url);
    const task = await call(agent, 'GetTask', { id, historyLength: 0 }, Task, 'reads').catch(unlessUnknownTask);
    if (task === undefined) return 'missing';
    return STATES[task.status?.state ?? ''] ?? 'working';
  },

  async end(access, url, id) {
    await call(await readAgentCard(access, url), 'CancelTask', { id }, Task).catch(unlessUnknownTask);
  },
};

class TaskIsGone extends TargetRefused {
  constructor() {
    super(`${SYSTEM} does not know the task, or it has ended`, { retryable: false });
  }
}

function unlessUnknownTask(error: unknown): undefined {
  if (error instanceof TaskIsGone) return undefined;
  throw error;
}

async function call<Result>(
  { endpoint, headers }: Agent,
  method: string,
  params: Record<string, unknown>,
  result: z.ZodType<Result>,
  effect: 'reads' | 'writes' = 'writes',
): Promise<Result> {
  const { body } = await exchange({
    system: SYSTEM,
    method: 'POST',
    url: endpoint,
    headers,
    body: { jsonrpc: '2.0', id: 1, method, params },
    ...(effect === 'reads' && { readOnly: true }),
    responseSchema: response(result),
  });
  if ('result' in body) return body.result as Result;
  const { code } = body.error;
  if (code === TASK_NOT_FOUND || code === TASK_NOT_CANCELABLE) throw new TaskIsGone();
  if (REFUSED.includes(code)) {
    throw new TargetRefused(`${SYSTEM} refused ${method} with the A2A error ${code}`, { retryable: false });
  }
  const message = `${SYSTEM} failed at ${method} with the A2A error ${code}`;
  throw effect === 'reads' ? new TargetRefused(message, { retryable: true }) : new OutcomeUnknown(message);
}

export const agentCredential = (access: Pick<Access, 'credential'>) =>
  credentialOf(access, Credential, 'the connection of the session needs a credential { token }');

/** The credential goes to the origin of its connection only. */
function headersFor(access: Access, url: string): Record<string, string> {
  assertSameOrigin(url, access.baseUrl, 'the address of its connection');
  const { token } = agentCredential(access);
  return { authorization: `Bearer ${token}`, 'a2a-version': VERSION };
}

interface Agent {
  endpoint: string;
  headers: Record<string, string>;
  /** It can notify the stage of the end of a task. */
  canNotify: boolean;
}

/** Where the agent takes messages, as its card says. */
export async function readAgentCard(access: Access, url: string): Promise<Agent> {
  const headers = headersFor(access, url);
  const { body } = await exchange({
    system: SYSTEM,
    method: 'GET',
    url: urlAt(url, CARD_PATH),
    headers,
    responseSchema: AgentCard,
  });
  const found = body.supportedInterfaces.find(
    ({ protocolBinding, protocolVersion = VERSION }) => protocolBinding === 'JSONRPC' && protocolVersion === VERSION,
  );
  if (!found) {
    throw new TargetRefused(`${SYSTEM} offers no JSON-RPC interface of A2A ${VERSION}`, { retryable: false });
  }
  assertSameOrigin(found.url, url, 'the address of its configuration');
  return { endpoint: found.url, headers, canNotify: body.capabilities?.pushNotifications === true };
}

/** An agent card of somebody else must not lead our credential away. */
function assertSameOrigin(url: string, expected: string, what: string): void {
  if (new URL(url).origin === new URL(expected).origin) return;
  throw new TargetRefused(`the address of the session has another origin than ${what}`, { retryable: false });
}
