import { describe, expect, it } from 'vitest';
import type { ApiClient } from '../../client/api-client.ts';
import { type FeedSocket, LiveFeed } from '../../client/live-feed.ts';
import { eventsOf, outputEventOf } from '../../lambdas/live/live-event.ts';
import type { ServerMessage } from '../../lambdas/live/messages.ts';
import type { CommitEvent } from '../../lambdas/run/events/events.ts';

const RUN = 'run_1';
const COMMITS = 40;
const CHUNKS = 20;
const AT = '2026-01-02T03:04:05.000Z';
const ofCommand = { step: 'go', index: 0, agent: 'a', assignment: 'x', leaseVersion: 1 };

/** Commit 5 begins a command, commit 30 ends it, and the last commit ends the run. */
function commit(seq: number) {
  const event =
    seq === 5
      ? { type: 'step.assigned', ...ofCommand, profile: 'dev-flex', environment: 'dev', statementHash: 'h' }
      : seq === 30
        ? { type: 'step.command_ended', ...ofCommand, receiptKey: 'k', status: 'succeeded' }
        : seq === COMMITS
          ? { type: 'run.status_changed', from: 'running', to: 'succeeded', initiator: 'system', actor: 'worker' }
          : { type: 'run.enriched', enrichmentHash: String(seq) };
  return { seq, at: AT, events: [event as unknown as CommitEvent], prevHash: '', hash: '' };
}
const chunk = (seq: number) => ({ seq, stream: 'stdout' as const, at: AT, data: `line ${seq}\n` });
const command = { runId: RUN, stepIndex: 0, leaseVersion: 1 };

/** The same numbers for the same seed. */
function seeded(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A run that proceeds, an API that may fail, and sockets that lose, double, delay and reorder messages, and close. */
class FaultyWorld {
  readonly random: () => number;
  written = 0;
  printed = 0;
  nowMs = 0;
  #timers: { atMs: number; run: () => void }[] = [];
  #sockets: FeedSocket[] = [];
  #late: string[] = [];

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  readonly timers = {
    after: (ms: number, run: () => void) => {
      const timer = { atMs: this.nowMs + ms, run };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((each) => each !== timer);
      };
    },
  };

  readonly api = {
    call: async (key: string, { query = {} }: { query?: { since?: number } } = {}) => {
      if (this.random() < 0.2) throw new Error('the API does not respond');
      const since = query.since ?? 0;
      if (key.startsWith('POST')) return { url: 'ws://feed', ticket: 't', connectionSeconds: 900 };
      if (key.endsWith('/output')) {
        const chunks = Array.from({ length: Math.max(0, this.printed - since) }, (_, index) => chunk(since + index));
        return { step: 'go', chunks: chunks.slice(0, 3), more: chunks.length > 3, complete: false };
      }
      const commits = Array.from({ length: this.written - since }, (_, index) => commit(since + index + 1));
      const status = this.written === COMMITS ? 'succeeded' : 'running';
      return { status, commits: commits.slice(0, 7), next: 0, more: commits.length > 7 };
    },
  } as unknown as Pick<ApiClient, 'call'>;

  get WebSocket() {
    const world = this;
    return class implements FeedSocket {
      onopen: FeedSocket['onopen'] = null;
      onmessage: FeedSocket['onmessage'] = null;
      onclose: FeedSocket['onclose'] = null;
      onerror: FeedSocket['onerror'] = null;
      constructor() {
        world.#sockets.push(this);
        world.timers.after(10, () => (world.random() < 0.2 ? this.close() : this.onopen?.(undefined as never)));
      }
      send() {
        world.push({ type: 'subscribed', run_id: RUN, commit: world.written });
      }
      close() {
        if (!world.#sockets.includes(this)) return;
        world.#sockets = world.#sockets.filter((each) => each !== this);
        this.onclose?.(undefined as never);
      }
    };
  }

  push(message: ServerMessage): void {
    const text = JSON.stringify(message);
    const fate = this.random();
    if (fate < 0.25) return;
    if (fate < 0.4) this.#late.push(text);
    const times = fate > 0.9 ? 2 : 1;
    for (const socket of this.#sockets) for (let sent = 0; sent < times; sent += 1) socket.onmessage?.({ data: text });
    if (this.random() < 0.3)
      for (const old of this.#late.splice(0)) for (const s of this.#sockets) s.onmessage?.({ data: old });
  }

  /** Something happens, and a second passes. */
  async step(): Promise<void> {
    if (this.written < COMMITS && this.random() < 0.7 && !(this.written === 29 && this.printed < CHUNKS)) {
      this.written += 1;
      this.push({ type: 'events', events: eventsOf(RUN, commit(this.written)) });
    }
    if (this.written >= 5 && this.printed < CHUNKS) {
      this.printed += 1;
      this.push({ type: 'events', events: [outputEventOf(command, chunk(this.printed - 1))] });
    }
    if (this.random() < 0.05) this.#sockets[0]?.close();
    this.nowMs += 1_000;
    for (const timer of this.#timers.filter(({ atMs }) => atMs <= this.nowMs)) {
      this.#timers = this.#timers.filter((each) => each !== timer);
      timer.run();
    }
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  }
}

describe('with a socket that loses, doubles, delays and reorders messages, and an API that fails', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])('nothing is lost and nothing is shown twice (seed %i)', async (seed) => {
    const world = new FaultyWorld(seed);
    const seen: string[] = [];
    let status = '';
    const feed = new LiveFeed({
      api: world.api,
      WebSocket: world.WebSocket,
      timers: world.timers,
      random: world.random,
    });
    feed.run(RUN, {
      onCommit: ({ seq }) => seen.push(`commit ${seq}`),
      onOutput: ({ payload }) => seen.push(`chunk ${payload.stream_seq}`),
      onStatus: (now) => {
        status = now;
      },
    });
    for (let steps = 0; steps < 600 && seen.length < COMMITS + CHUNKS; steps += 1) await world.step();
    feed.close();
    const numbers = (kind: string) =>
      seen.filter((each) => each.startsWith(kind)).map((each) => Number(each.split(' ')[1]));
    expect(numbers('commit')).toEqual(Array.from({ length: COMMITS }, (_, index) => index + 1));
    expect(numbers('chunk')).toEqual(Array.from({ length: CHUNKS }, (_, index) => index));
    // What a command printed comes before its end.
    expect(seen.indexOf(`chunk ${CHUNKS - 1}`)).toBeLessThan(seen.indexOf('commit 30'));
    expect(status).toBe('succeeded');
  });
});

it('a socket that looks open and is dead is given up after a ping without a response, and another one is opened', async () => {
  let nowMs = 0;
  let timers: { atMs: number; run: () => void }[] = [];
  const after = (ms: number, run: () => void) => {
    const timer = { atMs: nowMs + ms, run };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  };
  const sockets: DeadSocket[] = [];
  /** Responds to the subscription, then to nothing, and does not even report that it was closed. */
  class DeadSocket implements FeedSocket {
    onopen: FeedSocket['onopen'] = null;
    onmessage: FeedSocket['onmessage'] = null;
    onclose: FeedSocket['onclose'] = null;
    onerror: FeedSocket['onerror'] = null;
    constructor() {
      sockets.push(this);
      after(1, () => this.onopen?.(undefined as never));
    }
    send(text: string) {
      if (text.includes('subscribe')) this.onmessage?.({ data: JSON.stringify({ type: 'subscribed' }) });
    }
    close() {}
  }
  const states: string[] = [];
  const call = async () => ({ url: 'ws://feed', ticket: 't', connectionSeconds: 7_000 });
  const feed = new LiveFeed({
    ...{ api: { call } as never, WebSocket: DeadSocket, timers: { after }, random: () => 0.5 },
    onState: (state) => states.push(state),
  });
  feed.everything({ onCommit() {}, onStale() {} });
  const passSeconds = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      nowMs += 1_000;
      for (const timer of timers.filter(({ atMs }) => atMs <= nowMs)) {
        timers = timers.filter((each) => each !== timer);
        timer.run();
      }
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
  };
  await passSeconds(305);
  expect([states, sockets.length]).toEqual([['live'], 1]);
  await passSeconds(10);
  expect([states, sockets.length]).toEqual([['live', 'polling', 'live'], 2]);
  feed.close();
});
