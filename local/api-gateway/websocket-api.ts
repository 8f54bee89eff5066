import { randomBytes, randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { ACCOUNT, AwsError, type InvokeFunction, REGION } from '../aws/aws.ts';
import type { RestService } from '../aws/aws-calls.ts';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import type { HostClock, Timer } from '../host/clock.ts';
import { foreignRequest } from '../host/loopback-requests.ts';
import type { AccessCheck } from '../iam/access-checks.ts';
import type { Iam } from '../iam/iam.ts';
import type { ResolvedStack } from '../template/template.ts';
import { openingRequest, type SocketConnection, socketEvent } from './socket-events.ts';
import { type SocketApi, socketApis } from './websocket-routes.ts';

interface WebSocketApiOptions {
  stack: ResolvedStack;
  iam: Iam;
  invoke: InvokeFunction;
  clock: HostClock;
  log(line: string): void;
}

/** The limits of API Gateway. */
const MESSAGE_MAX_BYTES = 128 * 1024;
/** Of a client. It may split a message into several frames, up to the size of a message; clients of the feed do not. */
const FRAME_MAX_BYTES = 32 * 1024;
const CONNECTION_MAX_MS = 2 * 60 * 60_000;
const IDLE_MAX_MS = 10 * 60_000;
/** A client that reads nothing. API Gateway refuses further messages, too. */
const BUFFERED_MAX_BYTES = 4 * 1024 * 1024;
const GOING_AWAY = 1001;

interface Open extends SocketConnection {
  socket: WebSocket;
  api: SocketApi;
  lastActiveMs: number;
  timer?: Timer;
}

/** Runs the WebSocket APIs of the template as API Gateway does, with the management API `@connections`. */
export class WebSocketApi implements RestService {
  readonly #options: WebSocketApiOptions;
  readonly #apis: SocketApi[];
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: FRAME_MAX_BYTES, perMessageDeflate: false });
  readonly #open = new Map<string, Open>();

  constructor(options: WebSocketApiOptions) {
    this.#options = options;
    this.#apis = socketApis(options.stack);
  }

  /** Handles the request that opens a connection. `$connect` decides whether it is accepted. */
  async upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    stream.on('error', () => stream.destroy());
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const api = this.#apis.find(({ stage }) => pathname === `/${stage}` || pathname === `/${stage}/`);
    if (!api || foreignRequest(request) !== undefined) return refuse(stream, api ? 403 : 404);
    const connection = this.#newConnection(api, request);
    const status = await this.#connect(api, connection, request);
    if (status < 200 || status > 299) return refuse(stream, status);
    if (stream.destroyed) {
      await this.#invoke(api, connection, '$disconnect', 'DISCONNECT');
      return;
    }
    this.#server.handleUpgrade(request, stream, head, (socket) => this.#accept({ ...connection, socket, api }));
  }

  stop(): void {
    for (const { socket, timer } of this.#open.values()) {
      timer?.cancel();
      socket.terminate();
    }
    this.#open.clear();
    this.#server.close();
  }

  describe({ method, path }: WireRequest): { operation: string; checks: AccessCheck[] } {
    const { api, connectionId } = this.#addressed(path);
    const operation = OPERATIONS[method];
    if (!operation) throw new AwsError('UnknownOperationException', `@connections does not support ${method}`);
    const resource = `arn:aws:execute-api:${REGION}:${ACCOUNT}:${api.apiId}/${api.stage}/${method}/@connections/${connectionId}`;
    return { operation, checks: [{ action: 'execute-api:ManageConnections', resource }] };
  }

  async handle({ method, path, body }: WireRequest): Promise<WireReply> {
    const { connectionId } = this.#addressed(path);
    const open = this.#open.get(connectionId);
    if (open?.socket.readyState !== WebSocket.OPEN) throw new AwsError('GoneException', 'the connection is gone', 410);
    const headers = { 'content-type': 'application/json' };
    if (method === 'POST') {
      await this.#send(open, body);
      return { status: 200, headers, body: '' };
    }
    if (method === 'DELETE') {
      open.socket.close(GOING_AWAY);
      return { status: 204, headers, body: '' };
    }
    const { connectedAtMs, lastActiveMs, sourceIp, userAgent } = open;
    const [connectedAt, lastActiveAt] = [connectedAtMs, lastActiveMs].map((ms) => new Date(ms).toISOString());
    return {
      status: 200,
      headers,
      body: JSON.stringify({ connectedAt, lastActiveAt, identity: { sourceIp, userAgent } }),
    };
  }

  async #send(open: Open, body: Buffer): Promise<void> {
    if (body.length > MESSAGE_MAX_BYTES) {
      throw new AwsError('PayloadTooLargeException', `a message has at most ${MESSAGE_MAX_BYTES} bytes`, 413);
    }
    if (open.socket.bufferedAmount > BUFFERED_MAX_BYTES) {
      throw new AwsError('LimitExceededException', 'the client does not read its messages', 429);
    }
    this.#touch(open);
    open.socket.send(body, { binary: false });
  }

  #newConnection({ apiId, stage }: SocketApi, request: IncomingMessage): SocketConnection {
    return {
      // As in AWS, 16 characters of which the last is "=".
      connectionId: randomBytes(11).toString('base64').replaceAll('/', 'A').replaceAll('+', 'B'),
      apiId,
      stage,
      domainName: request.headers.host ?? 'localhost',
      sourceIp: (request.socket.remoteAddress ?? '127.0.0.1').replace(/^::ffff:/, ''),
      userAgent: request.headers['user-agent'] ?? '',
      connectedAtMs: this.#options.clock.now(),
    };
  }

  async #connect(api: SocketApi, connection: SocketConnection, request: IncomingMessage): Promise<number> {
    if (!api.routes.has('$connect')) return 200;
    try {
      const result = await this.#invokeRoute(api, connection, '$connect', 'CONNECT', openingRequest(request));
      return Number((result as { statusCode?: unknown } | undefined)?.statusCode ?? 502);
    } catch (error) {
      this.#options.log(`$connect: ${error instanceof Error ? error.message : String(error)}`);
      return 502;
    }
  }

  #accept(opened: Omit<Open, 'lastActiveMs'>): void {
    const open: Open = { ...opened, lastActiveMs: this.#options.clock.now() };
    const { socket, api, connectionId } = open;
    this.#open.set(connectionId, open);
    this.#arm(open);
    socket.on('message', (data: Buffer) => {
      this.#touch(open);
      void this.#message(open, data.toString('utf8'));
    });
    socket.on('error', () => socket.terminate());
    socket.on('close', () => {
      open.timer?.cancel();
      if (!this.#open.delete(connectionId)) return;
      void this.#invoke(api, open, '$disconnect', 'DISCONNECT');
    });
  }

  #touch(open: Open): void {
    open.lastActiveMs = this.#options.clock.now();
  }

  /** Closes the connection when it is idle for too long, or too old. */
  #arm(open: Open): void {
    const { clock } = this.#options;
    const endsAtMs = Math.min(open.lastActiveMs + IDLE_MAX_MS, open.connectedAtMs + CONNECTION_MAX_MS);
    if (clock.now() >= endsAtMs) open.socket.close(GOING_AWAY);
    else open.timer = clock.at(endsAtMs, () => this.#arm(open));
  }

  async #message(open: Open, body: string): Promise<void> {
    const { api, socket, connectionId } = open;
    const action = actionOf(body);
    const routeKey = action !== undefined && api.routes.has(action) ? action : '$default';
    if (await this.#invoke(api, open, routeKey, 'MESSAGE', { body })) return;
    socket.send(JSON.stringify({ message: 'Internal server error', connectionId, requestId: randomUUID() }));
  }

  /** False if the function failed or may not be invoked. */
  async #invoke(
    api: SocketApi,
    connection: SocketConnection,
    routeKey: string,
    eventType: 'MESSAGE' | 'DISCONNECT',
    rest: object = {},
  ): Promise<boolean> {
    try {
      await this.#invokeRoute(api, connection, routeKey, eventType, rest);
      return true;
    } catch (error) {
      this.#options.log(`${routeKey}: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }

  async #invokeRoute(
    api: SocketApi,
    connection: SocketConnection,
    routeKey: string,
    eventType: 'CONNECT' | 'MESSAGE' | 'DISCONNECT',
    rest: object,
  ): Promise<unknown> {
    const { iam, invoke, clock } = this.#options;
    const route = api.routes.get(routeKey);
    if (!route) return undefined;
    const sourceArn = `arn:aws:execute-api:${REGION}:${ACCOUNT}:${api.apiId}/${api.stage}/${routeKey}`;
    const { functionArn, roleArn } = route;
    const decision = iam.mayInvoke(functionArn, { principal: 'apigateway.amazonaws.com', sourceArn, roleArn });
    if (!decision.allowed) throw new Error(decision.message);
    const happening = { routeKey, eventType, requestId: randomUUID(), atMs: clock.now() };
    return invoke(functionArn, { ...socketEvent(connection, happening), ...rest });
  }

  #addressed(path: string): { api: SocketApi; connectionId: string } {
    const [, stage = '', connectionId = ''] = /^\/([^/]+)\/(?:@|%40)connections\/([^/]+)$/.exec(path) ?? [];
    const api = this.#apis.find((each) => each.stage === stage);
    if (!api) throw new AwsError('NotFoundException', `there is no WebSocket API with the path ${path}`, 404);
    return { api, connectionId: decodeURIComponent(connectionId) };
  }
}

const OPERATIONS: Record<string, string> = {
  POST: 'PostToConnection',
  GET: 'GetConnection',
  DELETE: 'DeleteConnection',
};

function actionOf(body: string): string | undefined {
  try {
    const { action } = JSON.parse(body) as { action?: unknown };
    return typeof action === 'string' ? action : undefined;
  } catch {
    return undefined;
  }
}

function refuse(stream: Duplex, status: number): void {
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
