import * as z from 'zod';
import { credentialOf, LOCAL_CREDENTIAL_PREFIX, READ_ONLY_CREDENTIAL_PREFIX } from '../credentials.ts';
import type { SimCall, SimResponse } from '../exchange.ts';
import { router, type SimulatedSystem, type Surprise, type SystemContext } from '../system.ts';
import { type Session, type SessionBehavior, Sessions } from './session.ts';
import { SimulatedAgent } from './simulated-agent.ts';

const VERSION = '1.0';
const PAGE_MAX = 100;

/** Error codes of JSON-RPC and A2A 1.0. */
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const TASK_NOT_FOUND = -32001;
const TASK_NOT_CANCELABLE = -32002;
const VERSION_NOT_SUPPORTED = -32009;

const Request = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
});

const Contract = z.looseObject({
  run_id: z.string(),
  completion_id: z.string(),
  token: z.string(),
  expires_at: z.string(),
  urls: z.object({ actions: z.url(), complete: z.url(), heartbeat: z.url() }),
  actions: z.array(z.object({ tool: z.string(), with: z.record(z.string(), z.unknown()).optional() })),
  context: z.unknown().optional(),
});

const SendMessage = z.object({
  message: z.object({
    messageId: z.string().min(1),
    contextId: z.string().min(1),
    role: z.literal('ROLE_USER'),
    parts: z.tuple([z.object({ text: z.string() }), z.object({ data: Contract })]),
  }),
  configuration: z
    .object({
      returnImmediately: z.boolean().optional(),
      taskPushNotificationConfig: z
        .object({
          url: z.url(),
          token: z.string().optional(),
          authentication: z.object({ scheme: z.string(), credentials: z.string().optional() }).optional(),
        })
        .optional(),
    })
    .optional(),
});

type Outcome = { result: unknown } | { error: { code: number; message: string } };

export interface SessionSystem extends SimulatedSystem {
  /** `waits`: how often a session at work has waited since its start. */
  latestSessions(limit: number): (Session & { waits?: number })[];
  close(): void;
}

/** An AI agent that speaks A2A 1.0 over JSON-RPC. What its sessions do is in simulated-agent.ts. */
export function openSessions(context: SystemContext): SessionSystem {
  const sessions = new Sessions(context.store, context.now);
  const agent = new SimulatedAgent(sessions, context.now);
  for (const session of sessions.atWork()) agent.work(session);

  const card = (): SimResponse => ({
    status: 200,
    body: {
      name: 'Simulated agent',
      description: 'Triages GitHub issues: proposes a label and an assignee.',
      version: '1.0.0',
      supportedInterfaces: [{ url: `${context.baseUrl()}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: VERSION }],
      capabilities: { streaming: false, pushNotifications: true },
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }],
      defaultInputModes: ['text/plain', 'application/json'],
      defaultOutputModes: ['application/json'],
      skills: [{ id: 'triage', name: 'Triage', description: 'Triages an issue.', tags: ['github'] }],
    },
  });

  const rpc = (call: SimCall, behavior: SessionBehavior | undefined): SimResponse => {
    const request = Request.safeParse(call.bodyIsMalformed ? undefined : call.body);
    if (!request.success) return respond(null, failed(INVALID_REQUEST, 'the body is not a JSON-RPC request'));
    const { id, method, params } = request.data;
    const version = call.header('a2a-version');
    if (version !== VERSION) {
      return respond(id, failed(VERSION_NOT_SUPPORTED, `A2A-Version is ${version ?? 'missing'}; send ${VERSION}`));
    }
    const serve = methods[method];
    return respond(id, serve ? serve(params, behavior) : failed(METHOD_NOT_FOUND, `there is no method ${method}`));
  };

  const methods: Record<string, (params: unknown, behavior?: SessionBehavior) => Outcome> = {
    SendMessage: (params, behavior) => {
      const parsed = SendMessage.safeParse(params);
      if (!parsed.success) return failed(INVALID_PARAMS, z.prettifyError(parsed.error));
      const { message, configuration } = parsed.data;
      const { url, token, authentication } = configuration?.taskPushNotificationConfig ?? {};
      const credentials = authentication?.credentials;
      const session = sessions.start({
        ...{ contextId: message.contextId, messageId: message.messageId },
        prompt: message.parts[0].text,
        contract: message.parts[1].data,
        state: behavior === 'refuses' ? 'TASK_STATE_REJECTED' : 'TASK_STATE_WORKING',
        ...(behavior && { behavior }),
        ...(url !== undefined && {
          notifications: { url, ...(token && { token }), ...(credentials && { credentials }) },
        }),
      });
      if (session.state === 'TASK_STATE_WORKING') agent.work(session);
      return { result: { task: taskOf(session) } };
    },
    ListTasks: (params) => {
      const { contextId = '', pageSize = PAGE_MAX } = params as { contextId?: string; pageSize?: number };
      const tasks = sessions.inContext(contextId).slice(0, Math.min(pageSize, PAGE_MAX)).map(taskOf);
      return { result: { tasks, nextPageToken: '', pageSize: tasks.length, totalSize: tasks.length } };
    },
    GetTask: (params) => {
      const session = sessions.get(String((params as { id?: string }).id));
      return session ? { result: taskOf(session) } : failed(TASK_NOT_FOUND, 'task not found');
    },
    CancelTask: (params) => {
      const session = sessions.get(String((params as { id?: string }).id));
      if (!session) return failed(TASK_NOT_FOUND, 'task not found');
      const cancelRequests = session.cancelRequests + 1;
      const isAtWork = session.state === 'TASK_STATE_WORKING';
      sessions.change(
        session.id,
        { cancelRequests, ...(isAtWork && { state: 'TASK_STATE_CANCELED' }) },
        'was asked to end',
      );
      if (!isAtWork) return failed(TASK_NOT_CANCELABLE, 'the task has ended');
      // A session that completes twice does not notice that it was asked to end.
      if (session.behavior !== 'completes_twice') agent.stop(session.id);
      return { result: taskOf({ ...session, state: 'TASK_STATE_CANCELED' }) };
    },
  };

  const answer = (call: SimCall, surprise?: Surprise): SimResponse => {
    const token = credentialOf(call.header('authorization'), 'bearer');
    if (!token.startsWith(LOCAL_CREDENTIAL_PREFIX) || token.startsWith(READ_ONLY_CREDENTIAL_PREFIX)) return refuse(401);
    const route = router({
      'GET /.well-known/agent-card.json': card,
      'POST /rpc': () => rpc(call, surprise as SessionBehavior | undefined),
    });
    return route(call) ?? { status: 404, body: { error: `no ${call.method} ${call.path}` } };
  };
  const latestSessions = (limit: number) =>
    sessions.latest(limit).map((session) => {
      const waits = agent.waits.get(session.id);
      return { ...session, ...(waits !== undefined && { waits }) };
    });
  return { answer, refuse, latestSessions, close: () => agent.close() };
}

const respond = (id: string | number | null, outcome: Outcome): SimResponse => ({
  status: 200,
  body: { jsonrpc: '2.0', id, ...outcome },
});

const failed = (code: number, message: string): Outcome => ({ error: { code, message } });

const taskOf = ({ id, contextId, state, updatedAt }: Session) => ({
  id,
  contextId,
  status: { state, timestamp: updatedAt },
});

const refuse = (status: number): SimResponse => ({ status, body: { error: `Simulated refusal ${status}` } });
