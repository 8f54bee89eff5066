import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { LiveEvent } from '../lambdas/live/live-event.ts';
import type { ServerMessage } from '../lambdas/live/messages.ts';

const CONNECTIONS = 500;
const OPENED_AT_ONCE = 8;
/** A decision and what follows are about 6 events. */
const DECISIONS = 100;
const DECISIONS_PER_SECOND = 9;
const WAIT_MAX_MS = 30_000;

export interface LiveFeedFigures {
  connections: number;
  openSeconds: number;
  eventsPerSecond: number;
  messagesPerSecond: number;
  /** From the commit of a decision to each connection that watches the run. */
  decisionToWatcherP50Ms: number;
  decisionToWatcherP99Ms: number;
  /** Decisions that did not reach a connection which watches their run. */
  missed: number;
}

/**
 * Measures the feed with 500 connections, which watch the runs by turns, while people decide on these runs. `runIds` wait
 * for approval. The clients share the process of the host, so the figures include their work.
 */
export async function liveFeedFigures(url: string, waiting: (count: number) => Promise<string[]>) {
  const runIds = await waiting(DECISIONS);
  const aheadMs = await aheadOf(url);
  const beganMs = performance.now();
  const watchers = await opened(url, runIds);
  const openSeconds = (performance.now() - beganMs) / 1000;
  const decidingMs = performance.now();
  await decideAll(url, runIds);
  const until = Date.now() + WAIT_MAX_MS;
  while (watchers.some(({ decidedAfterMs }) => decidedAfterMs === undefined) && Date.now() < until) await pause(50);
  const seconds = (performance.now() - decidingMs) / 1000;
  const figures = figuresOf(watchers, openSeconds, seconds, aheadMs);
  for (const watcher of watchers) watcher.close();
  return figures;
}

/** How far the clock of the host is ahead of this machine's: tests move it. */
async function aheadOf(url: string): Promise<number> {
  const { now } = (await (await fetch(`${url}/_local/clock`)).json()) as { now: string };
  return Date.parse(now) - Date.now();
}

function figuresOf(
  watchers: readonly Watcher[],
  openSeconds: number,
  seconds: number,
  aheadMs: number,
): LiveFeedFigures {
  const times = watchers
    .flatMap(({ decidedAfterMs }) => (decidedAfterMs === undefined ? [] : decidedAfterMs + aheadMs))
    .sort((one, other) => one - other);
  const at = (percent: number) =>
    times[Math.min(times.length - 1, Math.floor((times.length * percent) / 100))] ?? Number.NaN;
  const events = new Set(watchers.flatMap(({ eventIds }) => [...eventIds]));
  return {
    connections: watchers.length,
    openSeconds: round(openSeconds),
    eventsPerSecond: round(events.size / seconds),
    messagesPerSecond: round(watchers.reduce((sum, { messages }) => sum + messages, 0) / seconds),
    decisionToWatcherP50Ms: Math.round(at(50)),
    decisionToWatcherP99Ms: Math.round(at(99)),
    missed: watchers.length - times.length,
  };
}

async function opened(url: string, runIds: readonly string[]): Promise<Watcher[]> {
  const watchers: Watcher[] = [];
  const lane = async (first: number) => {
    for (let index = first; index < CONNECTIONS; index += OPENED_AT_ONCE) {
      watchers.push(await Watcher.open(url, runIds[index % runIds.length] ?? ''));
    }
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, (_, first) => lane(first)));
  return watchers;
}

/** Decides at a steady rate; a decision does not wait for the one before. */
async function decideAll(url: string, runIds: readonly string[]): Promise<void> {
  const decisions: Promise<void>[] = [];
  for (const runId of runIds) {
    decisions.push(decide(url, runId));
    await pause(1000 / DECISIONS_PER_SECOND);
  }
  await Promise.all(decisions);
}

const APPROVER = { 'x-api-key': 'local-approver-key', 'content-type': 'application/json' };

async function decide(url: string, runId: string): Promise<void> {
  const run = await fetch(`${url}/api/v1/runs/${runId}`, { headers: APPROVER });
  const { approvals } = (await run.json()) as { approvals: { actionHash: string }[] };
  const body = JSON.stringify({ actionHash: approvals.at(-1)?.actionHash });
  const decided = await fetch(`${url}/api/v1/runs/${runId}/approve`, { method: 'POST', headers: APPROVER, body });
  if (!decided.ok) throw new Error(`the response to the approval of ${runId} was ${decided.status}`);
}

/** A connection that watches one run. */
class Watcher {
  readonly eventIds = new Set<string>();
  messages = 0;
  decidedAfterMs: number | undefined;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async open(url: string, runId: string): Promise<Watcher> {
    const headers = { 'x-api-key': 'local-owner-key', 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/v1/live/ticket`, { method: 'POST', headers, body: '{}' });
    const { url: live, ticket } = (await response.json()) as { url: string; ticket: string };
    const socket = new WebSocket(`${live}?ticket=${ticket}`);
    const watcher = new Watcher(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.once('open', () => socket.send(JSON.stringify({ action: 'subscribe', run_id: runId })));
      socket.on('message', (data) => {
        const message = JSON.parse(String(data)) as ServerMessage;
        if (message.type === 'subscribed') resolve();
        if (message.type === 'error') reject(new Error(message.message));
        if (message.type === 'events') watcher.#receive(message.events);
      });
    });
    return watcher;
  }

  #receive(events: readonly LiveEvent[]): void {
    this.messages += 1;
    for (const { id, timestamp, payload } of events) {
      this.eventIds.add(id);
      if ('type' in payload && payload.type === 'approval.decided') {
        this.decidedAfterMs ??= Date.now() - Date.parse(timestamp);
      }
    }
  }

  close(): void {
    this.#socket.terminate();
  }
}

const round = (value: number): number => Math.round(value * 10) / 10;
