import { SOCKET_MAX_MS } from '../lambdas/agents/agent-terms.ts';
import type { AgentLog } from './agent-log.ts';
import { isPrivateConnection } from './config.ts';
import type { RuntimeClient } from './runtime-client.ts';
import type { System } from './system.ts';

interface Ports {
  client: Pick<RuntimeClient, 'socketHeaders'>;
  system: System;
  log: AgentLog;
}

/** The part of a connection that is used while it is open. */
interface OpenSocket {
  once(event: 'message', listener: () => void): unknown;
  send(data: string, sent: () => void): void;
  close(): void;
  terminate(): void;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** The runtime sends a few bytes. */
const MESSAGE_MAX_BYTES = 4 * 1024;
/** API Gateway closes a connection that is idle for 10 minutes. */
const PING_EVERY_MS = 5 * 60_000;
const PONG_WITHIN_MS = 15_000;
/** The operating system notices that the other side is gone, at no cost for the stage. */
const KEEP_ALIVE_MS = 15_000;
const RECONNECT_MS = { first: 1_000, max: 60_000 } as const;
/** A connection that ended sooner counts as a failure, so that the pauses grow. */
const LASTED_MS = 60_000;
/** A runtime that sends hints all the time does not make the agent sync all the time. */
const HINTS_APART_MS = 250;

/**
 * Keeps a WebSocket open on which the runtime says "sync now". The message is only a hint: what to do comes with the sync. No
 * error of the socket ends the agent, which syncs more often without it.
 */
export class SyncSocket {
  readonly #ports: Ports;
  /** Called for each hint, and when the socket was opened or closed: what happened between is found by a sync. */
  readonly #syncSoon: () => void;
  #url: string | undefined;
  #stop = new AbortController();
  #isOpen = false;
  #isHintWaiting = false;
  #nextHintFrom = Number.NEGATIVE_INFINITY;

  constructor(ports: Ports, syncSoon: () => void) {
    this.#ports = ports;
    this.#syncSoon = syncSoon;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** After each registration: the address that the runtime named, if it has a socket. */
  use(url: string | undefined): void {
    if (url === this.#url) return;
    this.close();
    this.#url = url;
    if (url === undefined) return;
    if (!isPrivateAddress(url)) {
      this.#ports.log.warn('the runtime named a socket address that is not wss; the agent syncs without the socket');
      return;
    }
    this.#stop = new AbortController();
    void this.#keepOpen(url, this.#stop.signal);
  }

  close(): void {
    this.#url = undefined;
    this.#stop.abort();
  }

  async #keepOpen(url: string, stopped: AbortSignal): Promise<void> {
    const { system, log } = this.#ports;
    for (let failures = 0; !stopped.aborted; ) {
      const startedAt = system.monotonic();
      const reason = await this.#connection(url, stopped).catch((error: Error) => error.message);
      if (stopped.aborted) return;
      failures = system.monotonic() - startedAt < LASTED_MS ? failures + 1 : 0;
      // Logs failures 1, 2, 4, 8 and so on.
      if (Number.isInteger(Math.log2(failures))) log.warn(`the socket is closed: ${reason}`, { failures });
      const pauseMs = Math.min(RECONNECT_MS.max, RECONNECT_MS.first * 2 ** Math.min(failures, 10));
      // Not all agents of a stage at once.
      await system.sleep(pauseMs * (0.5 + system.random() / 2), stopped);
    }
  }

  /** One connection. Resolves with the reason when it is closed. */
  async #connection(url: string, stopped: AbortSignal): Promise<string> {
    // Only a stage with a socket needs the package.
    const { WebSocket } = await import('ws');
    const socket = new WebSocket(url, {
      headers: this.#ports.client.socketHeaders(),
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MESSAGE_MAX_BYTES,
      perMessageDeflate: false,
    });
    const closed = new AbortController();
    const end = () => socket.terminate();
    stopped.addEventListener('abort', end);
    if (stopped.aborted) end();
    let failure: string | undefined;
    return new Promise((resolve) => {
      socket.once('upgrade', (response) => response.socket.setKeepAlive(true, KEEP_ALIVE_MS));
      socket.once('open', () => {
        this.#setOpen(true);
        void this.#ping(socket, closed.signal);
        void this.#endInTime(socket, closed.signal);
      });
      socket.on('message', (data) => {
        if (isHint(String(data))) this.#hint();
      });
      socket.on('error', (error) => {
        failure ??= error.message;
      });
      socket.once('close', (code) => {
        stopped.removeEventListener('abort', end);
        closed.abort();
        this.#setOpen(false);
        resolve(failure ?? `code ${code}`);
      });
    });
  }

  #setOpen(isOpen: boolean): void {
    if (this.#isOpen === isOpen) return;
    this.#isOpen = isOpen;
    this.#syncSoon();
  }

  #hint(): void {
    if (this.#isHintWaiting) return;
    this.#isHintWaiting = true;
    const { system } = this.#ports;
    void system.sleep(Math.max(0, this.#nextHintFrom - system.monotonic())).then(() => {
      this.#isHintWaiting = false;
      this.#nextHintFrom = system.monotonic() + HINTS_APART_MS;
      this.#syncSoon();
    });
  }

  /** Keeps the connection from being idle. One that does not respond is closed. */
  async #ping(socket: OpenSocket, closed: AbortSignal): Promise<void> {
    const { system } = this.#ports;
    for (;;) {
      await system.sleep(PING_EVERY_MS, closed);
      if (closed.aborted) return;
      const responded = new AbortController();
      socket.once('message', () => responded.abort());
      socket.send(JSON.stringify({ action: 'ping' }), () => undefined);
      await system.sleep(PONG_WITHIN_MS, AbortSignal.any([closed, responded.signal]));
      if (!responded.signal.aborted) socket.terminate();
    }
  }

  /** The runtime sends no hints to a connection that is too old. */
  async #endInTime(socket: OpenSocket, closed: AbortSignal): Promise<void> {
    const { system } = this.#ports;
    await system.sleep(SOCKET_MAX_MS * (0.7 + 0.2 * system.random()), closed);
    socket.close();
  }
}

function isPrivateAddress(url: string): boolean {
  return /^wss?:/.test(url) && URL.canParse(url) && isPrivateConnection(new URL(url.replace(/^ws/, 'http')));
}

function isHint(text: string): boolean {
  try {
    return (JSON.parse(text) as { type?: unknown } | null)?.type === 'sync';
  } catch {
    return false;
  }
}
