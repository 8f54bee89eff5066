import type { LiveEvent } from '../lambdas/live/live-event.ts';
import type { ServerMessage } from '../lambdas/live/messages.ts';
import type { ApiClient, ApiError } from './api-client.ts';
import { commitsOf, type FeedCommit, type RunHandlers, RunWatch } from './run-watch.ts';

export type { FeedCommit, FeedOutput, RunHandlers } from './run-watch.ts';

/** The part of a WebSocket that is used: of browsers, of Node.js, or of the package `ws`. */
export interface FeedSocket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string): void;
  close(): void;
}
export type FeedSocketConstructor = new (url: string) => FeedSocket;

/** `live`: events arrive over the socket. `polling`: they are read over the API. */
export type FeedState = 'live' | 'polling';

export interface FeedOptions {
  api: Pick<ApiClient, 'call'>;
  /** Without it, the feed polls. */
  WebSocket?: FeedSocketConstructor | undefined;
  onState?(state: FeedState): void;
  /** How often to poll while the socket is closed. */
  pollEveryMs?: number;
  timers?: FeedTimers;
  random?(): number;
}

export interface FeedTimers {
  /** Returns a function that cancels the timer. */
  after(ms: number, run: () => void): () => void;
}

export interface EverythingHandlers {
  /** A commit of any run of the tenant. Each one once, unless `onStale` was called between. */
  onCommit(runId: string, commit: FeedCommit): void;
  /** Something may have changed that was not seen: read again what is shown. */
  onStale(): void;
}

export interface Subscription {
  close(): void;
}

const POLL_EVERY_MS = 2_000;
/** While the socket is open: a lost last event leaves no gap that would show it. */
const CHECK_EVERY_MS = 30_000;
const PING_EVERY_MS = 5 * 60_000;
/** A laptop that slept, or a network that changed, leaves a socket that looks open and receives nothing. */
const PONG_WITHIN_MS = 10_000;
const RECONNECT_MS = { first: 1_000, max: 30_000 };
/** A stage without the feed may get one. */
const NO_FEED_RETRY_MS = 10 * 60_000;
const NOT_FOUND = 404;

const systemTimers: FeedTimers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Follows runs over the live feed (docs/live-feed.md), and over the API where the feed has a gap or does not work. One feed
 * has one socket for all its subscriptions. Without Node.js modules, for browsers.
 */
export class LiveFeed {
  readonly #options: FeedOptions;
  readonly #timers: FeedTimers;
  readonly #random: () => number;
  readonly #runs = new Map<string, Set<RunWatch>>();
  readonly #everything = new Set<{ handlers: EverythingHandlers; seen: Map<string, number> }>();
  #socket: FeedSocket | undefined;
  #isConnecting = false;
  #isClosed = false;
  #failures = 0;
  #received = 0;
  #state: FeedState = 'polling';
  #cancelPoll: (() => void) | undefined;
  readonly #ofSocket = new Set<() => void>();

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
    this.#random = options.random ?? Math.random;
  }

  get state(): FeedState {
    return this.#state;
  }

  /** Follows a run: every commit once and in order, from `since` on, and the output of its commands. */
  run(runId: string, handlers: RunHandlers, { since = 0 }: { since?: number } = {}): Subscription {
    const watch = new RunWatch(this.#options.api, runId, handlers, since);
    this.#runs.set(runId, (this.#runs.get(runId) ?? new Set()).add(watch));
    watch.refresh();
    this.#subscribed(() => this.#subscribeRun(runId));
    return {
      close: () => {
        watch.close();
        const others = this.#runs.get(runId);
        others?.delete(watch);
        if (others?.size === 0) this.#runs.delete(runId);
        this.#disconnectIfUnused();
      },
    };
  }

  /** Follows all runs of the tenant. `onStale` is called at once, and whenever something may have been missed. */
  everything(handlers: EverythingHandlers): Subscription {
    const entry = { handlers, seen: new Map<string, number>() };
    this.#everything.add(entry);
    this.#subscribed(() => this.#send({ action: 'subscribe' }));
    return {
      close: () => {
        this.#everything.delete(entry);
        this.#disconnectIfUnused();
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const watches of this.#runs.values()) for (const watch of watches) watch.close();
    this.#runs.clear();
    this.#everything.clear();
    this.#disconnectIfUnused();
  }

  get #isUsed(): boolean {
    return !this.#isClosed && this.#runs.size + this.#everything.size > 0;
  }

  #subscribed(subscribe: () => void): void {
    if (this.#socket && this.#state === 'live') subscribe();
    else void this.#connect();
    this.#cancelPoll ??= this.#schedulePoll();
  }

  /** Reads what every subscription may have missed: often without the socket, rarely with it. */
  #schedulePoll(): () => void {
    const everyMs = this.#state === 'live' ? CHECK_EVERY_MS : (this.#options.pollEveryMs ?? POLL_EVERY_MS);
    return this.#timers.after(everyMs, () => {
      this.#cancelPoll = undefined;
      if (!this.#isUsed) return;
      this.#refreshAll();
      this.#cancelPoll = this.#schedulePoll();
    });
  }

  #refreshAll(): void {
    for (const watches of this.#runs.values()) for (const watch of watches) watch.refresh();
    for (const { handlers } of this.#everything) handlers.onStale();
  }

  async #connect(): Promise<void> {
    const { WebSocket: Socket, api } = this.#options;
    if (!Socket || this.#socket || this.#isConnecting || !this.#isUsed) return;
    this.#isConnecting = true;
    try {
      const { url, ticket, connectionSeconds } = await api.call('POST /api/v1/live/ticket', { body: {} });
      if (this.#isUsed) this.#open(new Socket(`${url}?ticket=${encodeURIComponent(ticket)}`), connectionSeconds * 1000);
    } catch (error) {
      const hasNoFeed = (error as ApiError | undefined)?.status === NOT_FOUND;
      this.#reconnectLater(hasNoFeed ? NO_FEED_RETRY_MS : undefined);
    } finally {
      this.#isConnecting = false;
    }
  }

  #open(socket: FeedSocket, lastsMs: number): void {
    this.#socket = socket;
    socket.onopen = () => {
      for (const runId of this.#runs.keys()) this.#subscribeRun(runId);
      if (this.#everything.size > 0) this.#send({ action: 'subscribe' });
      this.#everyMs(PING_EVERY_MS, () => this.#ping(socket));
      // Earlier than the end of the connection, and not all clients at once.
      this.#untilClosed(lastsMs * (0.7 + 0.2 * this.#random()), () => socket.close());
    };
    socket.onmessage = ({ data }) => {
      this.#received += 1;
      if (this.#socket === socket) this.#receive(data);
    };
    socket.onerror = () => socket.close();
    socket.onclose = () => this.#closed(socket);
  }

  #ping(socket: FeedSocket): void {
    const before = this.#received;
    this.#send({ action: 'ping' });
    this.#untilClosed(PONG_WITHIN_MS, () => {
      if (this.#received > before) return;
      socket.close();
      // A dead socket reports its end only after minutes.
      this.#closed(socket);
    });
  }

  #closed(socket: FeedSocket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    for (const cancel of this.#ofSocket) cancel();
    this.#ofSocket.clear();
    const wasLive = this.#state === 'live';
    this.#setState('polling');
    if (!this.#isUsed) return;
    if (wasLive) this.#refreshAll();
    this.#reconnectLater(wasLive ? RECONNECT_MS.first : undefined);
  }

  /** Pauses grow with each failure, and vary, so that clients do not come back at the same moment. */
  #reconnectLater(inMs?: number): void {
    const backoffMs = Math.min(RECONNECT_MS.max, RECONNECT_MS.first * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    const pauseMs = (inMs ?? backoffMs) * (0.5 + this.#random() / 2);
    this.#timers.after(pauseMs, () => void this.#connect());
  }

  #setState(state: FeedState): void {
    if (this.#state === state) return;
    this.#state = state;
    // The next poll comes after the other interval.
    this.#cancelPoll?.();
    this.#cancelPoll = this.#isUsed ? this.#schedulePoll() : undefined;
    this.#options.onState?.(state);
  }

  #receive(data: unknown): void {
    const message = parse(data);
    if (message?.type === 'events') this.#deliver(message.events);
    else if (message?.type === 'changed') this.#changed(message.run_id);
    else if (message?.type === 'subscribed') this.#isSubscribed(message.run_id, message.commit);
    // The API says what is wrong, and polling continues.
    else if (message?.type === 'error') this.#refreshAll();
  }

  #changed(runId: string): void {
    for (const watch of this.#runs.get(runId) ?? []) watch.refresh();
    for (const { handlers } of this.#everything) handlers.onStale();
  }

  #isSubscribed(runId: string | undefined, commit = 0): void {
    this.#failures = 0;
    this.#setState('live');
    if (runId !== undefined) for (const watch of this.#runs.get(runId) ?? []) watch.isAt(commit);
    else for (const { handlers } of this.#everything) handlers.onStale();
  }

  #deliver(events: readonly LiveEvent[]): void {
    const byRun = new Map<string, LiveEvent[]>();
    for (const event of events) byRun.set(event.run_id, [...(byRun.get(event.run_id) ?? []), event]);
    for (const [runId, ofRun] of byRun) {
      for (const watch of this.#runs.get(runId) ?? []) watch.receive(ofRun);
      for (const { handlers, seen } of this.#everything) {
        for (const commit of commitsOf(ofRun)) {
          if (commit.seq <= (seen.get(runId) ?? 0)) continue;
          seen.set(runId, commit.seq);
          handlers.onCommit(runId, commit);
        }
      }
    }
  }

  #subscribeRun(runId: string): void {
    const [watch] = this.#runs.get(runId) ?? [];
    if (watch) this.#send({ action: 'subscribe', run_id: runId, last_event_id: watch.lastEventId });
  }

  #send(message: object): void {
    try {
      this.#socket?.send(JSON.stringify(message));
    } catch {
      this.#socket?.close();
    }
  }

  #untilClosed(ms: number, run: () => void): void {
    const cancel = this.#timers.after(ms, () => {
      this.#ofSocket.delete(cancel);
      run();
    });
    this.#ofSocket.add(cancel);
  }

  #everyMs(ms: number, run: () => void): void {
    this.#untilClosed(ms, () => {
      run();
      this.#everyMs(ms, run);
    });
  }

  #disconnectIfUnused(): void {
    if (this.#isUsed) return;
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
    this.#socket?.close();
  }
}

function parse(data: unknown): ServerMessage | undefined {
  try {
    return JSON.parse(String(data)) as ServerMessage;
  } catch {
    return undefined;
  }
}
