import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type * as z from 'zod';
import { AGENT_SOCKET_PATH, ASSIGNMENT_PAYLOAD_TYPE } from '../../lambdas/agents/agent-terms.ts';
import {
  AckRequest,
  type AssignmentStatement,
  CompleteRequest,
  EnrolRequest,
  HeartbeatRequest,
  type HeartbeatResponse,
  OutputRequest,
  RegisterRequest,
} from '../../lambdas/agents/protocol.ts';
import { parseNonce, parsePublicKey, verifyRequest } from '../../lambdas/agents/request-signature.ts';
import { preAuthEncoding } from '../../lambdas/evidence/signing/dsse.ts';

type Sync = z.infer<typeof HeartbeatResponse>;
type Ack = z.infer<typeof AckRequest>;
type Report = z.infer<typeof CompleteRequest>;
type Chunk = z.infer<typeof OutputRequest>['chunks'][number];

/** What a test decides: how the runtime behaves, and how it misbehaves. */
export interface Behaviour {
  /** The status of all responses instead of a result. */
  failWith: number | undefined;
  /** Closes connections without a response to these requests, after it has called this function. */
  cut: ((route: string) => boolean) | undefined;
  /** Handles these requests, and closes their connections without a response. */
  cutResponse: ((route: string) => boolean) | undefined;
  /** The length of a lease from each renewal on. */
  leaseMs: number;
  syncMs: number;
  /** The interval with an open socket. */
  syncWithSocketMs: number;
  /** The address that registrations name: the socket of this runtime, none, or another one. */
  socketUrl: string | undefined;
  confirm: boolean;
  completeWith: 'accepted' | 'duplicate' | 'lease_lost';
  drain: boolean;
}

export const TENANT = 'acme';
export const AGENT_ID = 'agt_1';

/** Other ids in each process: an agent ends everything on the machine that has the id of its assignment. */
export const RUN_ID = `run_${process.pid}`;
export const ASSIGNMENT_ID = `${RUN_ID}.0.1`;
export const OTHER_RUN_ID = `${RUN_ID}0`;
export const OTHER_ASSIGNMENT_ID = `${OTHER_RUN_ID}.0.1`;

/**
 * The agent API as a test needs it: it verifies each request and records it, and sends what the test says, signed or not.
 * The runtime itself is tested elsewhere.
 */
export class FakeRuntime {
  readonly behaviour: Behaviour = {
    failWith: undefined,
    cut: undefined,
    cutResponse: undefined,
    leaseMs: 600_000,
    syncMs: 500,
    syncWithSocketMs: 500,
    socketUrl: undefined,
    confirm: true,
    completeWith: 'accepted',
    drain: false,
  };
  readonly signingKey = generateKeyPairSync('ed25519');
  readonly acks: Ack[] = [];
  readonly reports: Report[] = [];
  readonly chunks = new Map<string, Chunk[]>();
  readonly syncs: z.infer<typeof HeartbeatRequest>[] = [];
  readonly registrations: z.infer<typeof RegisterRequest>[] = [];
  readonly routes: string[] = [];
  /** Requests that the runtime refused, with the code. */
  readonly refused: string[] = [];
  offers: Sync['assignments'] = [];
  cancels: Sync['cancels'] = [];
  introductions: { envelope: unknown }[] = [];
  lost = new Set<string>();
  /** Open sockets of the agent, and what it sent through them. */
  readonly sockets = new Set<WebSocket>();
  readonly socketMessages: unknown[] = [];
  /** How often the agent tried to open a socket. */
  socketRequests = 0;
  readonly #socketServer = new WebSocketServer({ noServer: true });
  #agentKey: KeyObject | undefined;
  #bootId = '';
  #counter = 0;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #changed = Promise.withResolvers<void>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  async start(): Promise<this> {
    this.#server.on('upgrade', (request, stream, head) => void this.#upgrade(request, stream, head));
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.cutSockets();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Where `behaviour.socketUrl` may point. */
  get ownSocketUrl(): string {
    return `${this.url.replace('http', 'ws')}/live`;
  }

  say(text: string): void {
    for (const socket of this.sockets) socket.send(text);
  }

  cutSockets(): void {
    for (const socket of this.sockets) socket.terminate();
  }

  get signingKeys() {
    const spki = createPublicKey(this.signingKey.privateKey).export({ type: 'spki', format: 'der' });
    return [{ key_id: 'key/1', algorithm: 'ed25519' as const, public_key: spki.toString('base64') }];
  }

  /** Waits until the condition is true. It is checked after each request of the agent. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#changed.promise;
  }

  offer(statement: AssignmentStatement, envelope: unknown = this.envelope(statement)): void {
    this.offers.push({ assignment_id: statement.assignment_id, envelope });
  }

  envelope(statement: unknown, { type = ASSIGNMENT_PAYLOAD_TYPE, key = this.signingKey.privateKey } = {}): unknown {
    const payload = Buffer.from(JSON.stringify(statement));
    const sig = sign(null, preAuthEncoding(type, payload), key).toString('base64');
    return { payload: payload.toString('base64'), payloadType: type, signatures: [{ keyid: 'key/1', sig }] };
  }

  now(): number {
    return this.#now();
  }

  /** A statement for the agent, valid now. */
  statement(changes: Partial<AssignmentStatement> = {}): AssignmentStatement {
    const now = this.#now();
    return {
      version: 1,
      tenant: TENANT,
      agent_id: AGENT_ID,
      assignment_id: ASSIGNMENT_ID,
      session_id: RUN_ID,
      step_number: 1,
      step_id: 'restart',
      lease_version: 1,
      idempotency_key: 'key-1',
      action_hash: 'hash',
      approval_id: null,
      environment: 'dev',
      sandbox_profile: 'dev-flex',
      network_segment: null,
      capabilities: [],
      command: { executable: '/bin/sh', args: ['-c', 'echo hello'] },
      rollback: false,
      timeout_seconds: 60,
      credentials: [],
      issued_at: new Date(now).toISOString(),
      start_before: new Date(now + 120_000).toISOString(),
      ...changes,
    };
  }

  /** The stored output of an assignment, as one text. */
  outputOf(assignmentId: string, type?: Chunk['chunk_type']): string {
    const chunks = this.chunks.get(assignmentId) ?? [];
    return chunks
      .filter(({ chunk_type }) => type === undefined || chunk_type === type)
      .map(({ data }) => data)
      .join('');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body: Buffer[] = [];
    for await (const chunk of request) body.push(chunk as Buffer);
    const text = Buffer.concat(body).toString('utf8');
    const now = this.#now();
    if (this.behaviour.cut?.(routeOf(request))) {
      request.socket.destroy();
      this.#notify();
      return;
    }
    const { status, content } = await this.#respond(request, text, now);
    if (this.behaviour.cutResponse?.(routeOf(request))) {
      request.socket.destroy();
      this.#notify();
      return;
    }
    response.writeHead(status, { 'content-type': 'application/json', date: new Date(now).toUTCString() });
    response.end(JSON.stringify(content));
    this.#notify();
  }

  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    this.socketRequests += 1;
    const headers = request.headers as Record<string, string>;
    const signed = { method: 'GET', path: AGENT_SOCKET_PATH, body: '', headers };
    const verified = await verifyRequest(signed, this.#now(), () => this.#agentKey);
    const isFailing = this.behaviour.failWith !== undefined;
    if (isFailing || !verified.valid || parseNonce(verified.nonce)?.bootId !== this.#bootId) {
      stream.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      this.#notify();
      return;
    }
    this.#socketServer.handleUpgrade(request, stream, head, (socket) => {
      this.sockets.add(socket);
      socket.on('message', (data) => {
        const message = JSON.parse(String(data)) as { action?: string };
        this.socketMessages.push(message);
        if (message.action === 'ping') socket.send('{"type":"pong"}');
        this.#notify();
      });
      socket.on('close', () => {
        this.sockets.delete(socket);
        this.#notify();
      });
      this.#notify();
    });
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #respond(request: IncomingMessage, text: string, now: number): Promise<{ status: number; content: unknown }> {
    const route = routeOf(request);
    this.routes.push(route);
    if (this.behaviour.failWith !== undefined) return { status: this.behaviour.failWith, content: { message: 'no' } };
    if (route === '/healthz') return { status: 200, content: {} };
    const body: unknown = JSON.parse(text);
    const refuse = (status: number, code: string) => {
      this.refused.push(code);
      const time = code === 'SIGNATURE_EXPIRED' ? { server_time: new Date(now).toISOString() } : {};
      return { status, content: { code, detail: `refused: ${code}`, ...time } };
    };
    if (route === 'enrol') this.#agentKey = parsePublicKey(EnrolRequest.parse(body).public_key);
    const headers = request.headers as Record<string, string>;
    const signed = { method: 'POST', path: request.url ?? '', body: text, headers };
    const verified = await verifyRequest(signed, now, () => this.#agentKey);
    if (!verified.valid) return refuse(401, verified.code);
    const { bootId = '', counter = 0 } = parseNonce(verified.nonce) ?? {};
    if (route !== 'enrol' && route !== 'register') {
      if (bootId !== this.#bootId) return refuse(409, 'AGENT_IDENTITY_IN_USE');
      if (counter <= this.#counter) return refuse(401, 'REQUEST_REPLAYED');
    }
    this.#bootId = bootId;
    this.#counter = counter;
    return { status: 200, content: this.#handle(route, body, now) };
  }

  #handle(route: string, body: unknown, now: number): unknown {
    const intervals = {
      sync_ms: this.behaviour.syncWithSocketMs,
      sync_while_running_ms: this.behaviour.syncMs,
      sync_without_socket_ms: this.behaviour.syncMs,
    };
    const leaseEnd = new Date(now + this.behaviour.leaseMs).toISOString();
    switch (route.split('/').at(-1)) {
      case 'enrol':
        return {
          agent_id: AGENT_ID,
          tenant: TENANT,
          name: 'demo',
          environments: ['dev'],
          network_segment: null,
          signing_keys: this.signingKeys,
        };
      case 'register':
        this.registrations.push(RegisterRequest.parse(body));
        return { state: 'idle', intervals, new_signing_keys: this.introductions, ...this.#socketAddress };
      case 'heartbeat': {
        const sync = HeartbeatRequest.parse(body);
        this.syncs.push(sync);
        const leases = sync.running.map(({ assignment_id }) => ({
          assignment_id,
          expires_at: this.lost.has(assignment_id) ? null : leaseEnd,
        }));
        const { drain } = this.behaviour;
        const server_time = new Date(now).toISOString();
        return {
          server_time,
          state: 'idle',
          assignments: this.offers,
          leases,
          cancels: this.cancels,
          drain,
          intervals,
        };
      }
      case 'ack': {
        const ack = AckRequest.parse(body);
        this.acks.push(ack);
        this.offers = this.offers.filter(({ assignment_id }) => assignment_id !== ack.assignment_id);
        return { confirmed: ack.accepted && this.behaviour.confirm, expires_at: ack.accepted ? leaseEnd : null };
      }
      case 'output':
        return this.#store(OutputRequest.parse(body));
      case 'complete-step':
        this.reports.push(CompleteRequest.parse(body));
        return { result: this.behaviour.completeWith };
      default:
        return { state: 'draining', running: 0 };
    }
  }

  get #socketAddress() {
    const { socketUrl: url } = this.behaviour;
    return url === undefined ? {} : { socket: { url } };
  }

  #store({ assignment_id, chunks }: z.infer<typeof OutputRequest>): unknown {
    const stored = this.chunks.get(assignment_id) ?? [];
    for (const chunk of chunks) if (chunk.stream_seq === stored.length) stored.push(chunk);
    this.chunks.set(assignment_id, stored);
    return { next_seq: stored.length, wait_ms: 0, full: false };
  }
}

const routeOf = (request: IncomingMessage): string => (request.url ?? '').replace(/^\/api\/v1\/agent\//, '');
