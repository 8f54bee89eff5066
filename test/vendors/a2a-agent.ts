import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { A2A_VERSION_HEADER, AGENT_CARD_PATH, type AgentCard, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  defaultServerCallContextBuilder,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  type ServerCallContext,
  validateVersion,
} from '@a2a-js/sdk/server';
import {
  type Agent,
  type AgentFault,
  type Behavior,
  SLOW_MS,
  STAGE,
} from '../contracts/sessions/session-provider-contract.ts';
import { listen, stop } from '../local/simulators/world.ts';

const TOKEN = 'token-of-the-connection';
const JSON_TYPE = { 'content-type': 'application/json' };

/** One call as the server of the SDK got it. */
export interface ReceivedCall {
  method: string;
  params: Record<string, unknown>;
  headers: IncomingMessage['headers'];
}

export interface SdkAgent extends Agent {
  readonly calls: ReceivedCall[];
  /** What the SDK understood of each message. */
  readonly received: RequestContext[];
  /** The work of the session ends. */
  finish(sessionId: string): void;
}

/** A server of the official SDK over `node:http`: its request handler, task store, JSON-RPC and push notifications. */
export async function openSdkAgent({ pushNotifications = true } = {}): Promise<SdkAgent> {
  const executor = new Executor();
  const store = new Store(executor);
  const calls: ReceivedCall[] = [];
  const faults: { method: string; fault: AgentFault }[] = [];
  const server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error));
  });
  const url = await listen(server);
  const handler = new DefaultRequestHandler(cardOf(url, pushNotifications), store, executor);
  const rpc = new JsonRpcTransportHandler(handler);

  /** As the SDK's own server for Express does it. */
  async function answer(request: IncomingMessage, body: string): Promise<unknown> {
    if (request.method === 'GET') return handler.getAgentCard();
    const call = JSON.parse(body);
    calls.push({ method: call.method, params: call.params, headers: request.headers });
    const context = defaultServerCallContextBuilder({
      ...{ extensions: undefined, headers: request.headers },
      user: { isAuthenticated: true, userName: 'countersign' },
      requestedVersion: String(request.headers[A2A_VERSION_HEADER.toLowerCase()] ?? ''),
    });
    try {
      validateVersion(context.requestedVersion, await handler.getAgentCard(), 'JSONRPC');
      return await rpc.handle(call, context);
    } catch (error) {
      return { jsonrpc: '2.0', id: call.id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await request.toArray()).join('');
    const paths = [`GET /${AGENT_CARD_PATH}`, 'POST /rpc'];
    if (!paths.includes(`${request.method} ${request.url}`)) return void response.writeHead(404).end();
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return void response.writeHead(401).end();
    const at = faults.findIndex(({ method }) => method === request.method);
    const fault = at < 0 ? undefined : faults.splice(at, 1)[0]?.fault;
    if (fault === 'slow') await wait(SLOW_MS);
    if (typeof fault === 'object' && 'status' in fault) {
      const { status, retryAfterSeconds } = fault;
      if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds);
      return void response.writeHead(status).end();
    }
    const given = await answer(request, body);
    if (fault === 'lost_answer') return void response.destroy();
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(typeof fault === 'object' ? fault.body : given));
  }

  return {
    ...{ url, calls, received: executor.received },
    access: { baseUrl: url, instance: 'acme', credential: { token: TOKEN }, ownUrl: STAGE },
    finish: (id) => executor.finish(id),
    next: async (behavior) => {
      executor.behavior = behavior;
    },
    fault: async (method, fault) => {
      faults.push({ method, fault });
    },
    sessions: async () =>
      executor.received.map(({ taskId: id, contextId, userMessage: { messageId } }) => {
        const cancelRequests = calls.filter(({ method, params }) => method === 'CancelTask' && params.id === id).length;
        return { id, contextId, prompts: [messageId], cancelRequests };
      }),
    prompts: async () =>
      executor.received.map(({ userMessage: { parts } }) => {
        const [text, data] = parts.map(({ content }) => content);
        if (text?.$case !== 'text' || data?.$case !== 'data') throw new Error('the parts are not a text and data');
        return { text: text.value, data: data.value };
      }),
    close: () => stop(server),
  };
}

/** An agent whose sessions do what the test says. */
class Executor implements AgentExecutor {
  behavior: Behavior = 'works';
  readonly received: RequestContext[] = [];
  readonly lost = new Set<string>();
  readonly #finish = new Map<string, (state: TaskState) => void>();

  finish(taskId: string, state = TaskState.TASK_STATE_COMPLETED): void {
    this.#finish.get(taskId)?.(state);
  }

  readonly execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    this.received.push(context);
    const { taskId, contextId, userMessage } = context;
    const { behavior } = this;
    const first = behavior === 'refuses' ? TaskState.TASK_STATE_REJECTED : TaskState.TASK_STATE_WORKING;
    const task = { id: taskId, contextId, history: [userMessage], artifacts: [], metadata: {} };
    bus.publish(AgentEvent.task({ ...task, status: statusOf(first) }));
    if (behavior === 'refuses') return;
    if (behavior === 'disappears') this.lost.add(taskId);
    const ended = new Promise<TaskState>((resolve) => this.#finish.set(taskId, resolve));
    if (behavior === 'dies') this.finish(taskId, TaskState.TASK_STATE_FAILED);
    if (behavior === 'ends_early') this.finish(taskId);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: statusOf(await ended), metadata: {} }));
  };

  readonly cancelTask = async (taskId: string): Promise<void> => this.finish(taskId, TaskState.TASK_STATE_CANCELED);
}

/** The store of the SDK, which has lost some tasks. */
class Store extends InMemoryTaskStore {
  readonly #executor: Executor;
  constructor(executor: Executor) {
    super();
    this.#executor = executor;
  }

  override async load(taskId: string, context: ServerCallContext) {
    return this.#executor.lost.has(taskId) ? undefined : super.load(taskId, context);
  }

  override async list(...request: Parameters<InMemoryTaskStore['list']>) {
    const found = await super.list(...request);
    return { ...found, tasks: found.tasks.filter(({ id }) => !this.#executor.lost.has(id)) };
  }
}

const statusOf = (state: TaskState) => ({ state, message: undefined, timestamp: '2026-01-02T03:04:05.000Z' });

const cardOf = (url: string, pushNotifications: boolean): AgentCard => ({
  ...{ name: 'Agent of the SDK', description: 'For tests.', version: '1.0.0', provider: undefined },
  supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  capabilities: { streaming: true, pushNotifications, extensions: [], extendedAgentCard: false },
  ...{ securitySchemes: {}, securityRequirements: [], signatures: [], skills: [] },
  defaultInputModes: ['text/plain', 'application/json'],
  defaultOutputModes: ['application/json'],
});
