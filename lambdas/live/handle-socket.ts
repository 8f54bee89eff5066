import * as z from 'zod';
import { AGENT_SOCKET_PATH } from '../agents/agent-terms.ts';
import { type AgentAuthenticator, authenticateAgent } from '../api/agents/authenticate-agent.ts';
import { type HttpEvent, Problem } from '../entry/http.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import type { Log } from '../entry/ports.ts';
import { type Connecting, connectAgent, connectWithTicket } from './connect.ts';
import type { LiveStore } from './live-store.ts';
import { type ServerMessage, SubscribeMessage } from './messages.ts';
import { type SubscribePorts, subscribe } from './subscribe.ts';

/** The parts of an event of a WebSocket API that are used. `$connect` has headers and a query, messages have a body. */
export interface SocketEvent {
  requestContext: { routeKey: string; connectionId: string; requestId?: string };
  headers?: Record<string, string | undefined>;
  queryStringParameters?: Record<string, string | undefined> | null;
  body?: string;
}

export interface SocketPorts extends SubscribePorts, AgentAuthenticator {
  live: LiveStore;
  isPerson: Connecting['isPerson'];
  log: Log;
}

interface SocketResponse {
  statusCode: number;
  body?: string;
}

const OK: SocketResponse = { statusCode: 200 };
const UNAUTHORIZED: SocketResponse = { statusCode: 401, body: 'get a new ticket: POST /api/v1/live/ticket' };

/** Everything that happens on a connection, by route. A person has a ticket; an agent signs the request that connects. */
export async function handleSocket(ports: SocketPorts, event: SocketEvent): Promise<SocketResponse> {
  const { routeKey, connectionId } = event.requestContext;
  switch (routeKey === '$default' ? actionOf(event) : routeKey) {
    case '$connect':
      return connect(ports, event);
    case 'ping':
      await reply(ports, connectionId, { type: 'pong' });
      return OK;
    case 'subscribe':
      await subscribeWith(ports, event);
      return OK;
    default:
      await reply(ports, connectionId, badRequest('send {"action": "subscribe"} or {"action": "ping"}'));
      return OK;
  }
}

/** All messages have the route `$default`: a route for each action would cost a CloudFormation resource. */
function actionOf({ body = '' }: SocketEvent): unknown {
  return (tryParseJson(body) as { action?: unknown } | null | undefined)?.action;
}

async function connect(ports: SocketPorts, event: SocketEvent): Promise<SocketResponse> {
  const { connectionId } = event.requestContext;
  const ticket = event.queryStringParameters?.ticket;
  if (ticket) return (await connectWithTicket(ports, connectionId, ticket)) ? OK : UNAUTHORIZED;
  try {
    const { agent } = await authenticateAgent(ports, signedRequest(event), 'idempotent');
    await connectAgent(ports, connectionId, agent);
    return OK;
  } catch (error) {
    if (error instanceof Problem) return { statusCode: error.status, body: error.message };
    throw error;
  }
}

/** Agents sign a fixed path, because the path of the WebSocket API depends on its stage and domain. */
function signedRequest({ headers = {}, requestContext }: SocketEvent): HttpEvent {
  const lowerCased = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    headers: Object.fromEntries(lowerCased),
    rawPath: AGENT_SOCKET_PATH,
    rawQueryString: '',
    isBase64Encoded: false,
    requestContext: { requestId: requestContext.requestId ?? '', http: { method: 'GET' } },
  } as unknown as HttpEvent;
}

async function subscribeWith(ports: SocketPorts, { requestContext: { connectionId }, body = '' }: SocketEvent) {
  const message = SubscribeMessage.safeParse(tryParseJson(body));
  if (message.success) return subscribe(ports, connectionId, message.data);
  await reply(ports, connectionId, badRequest(`the message is not understood: ${z.prettifyError(message.error)}`));
}

const badRequest = (message: string): ServerMessage => ({ type: 'error', code: 'BAD_REQUEST', message });

async function reply({ sockets, live }: SocketPorts, connectionId: string, message: ServerMessage): Promise<void> {
  if ((await sockets.send(connectionId, JSON.stringify(message))) === 'gone') await live.close(connectionId);
}
