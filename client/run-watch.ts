import {
  type CommitLiveEvent,
  eventsOf,
  isOutput,
  type LiveEvent,
  type OutputLiveEvent,
  outputEventOf,
} from '../lambdas/live/live-event.ts';
import type { Commit } from '../lambdas/run/commit.ts';
import type { ApiClient, ResponseFrom } from './api-client.ts';

export type FeedCommit = Pick<Commit, 'seq' | 'at' | 'events'>;
/** A chunk of the output of a command. `step` is the id of the step, once it is known. */
export type FeedOutput = OutputLiveEvent & { step: string | undefined };
type RunStatus = ResponseFrom<'GET /api/v1/runs/{id}/events'>['status'];

export interface RunHandlers {
  /** Each commit once, in order. */
  onCommit(commit: FeedCommit): void;
  /** Each chunk once, in the order of its command, before the commit that ends the command. */
  onOutput?(output: FeedOutput): void;
  /** The status after the last commit. */
  onStatus?(status: RunStatus): void;
  /** A request failed. The feed tries again. */
  onError?(error: unknown): void;
}

interface Command {
  stepIndex: number;
  leaseVersion: number;
  step: string | undefined;
  /** The number of the next chunk. */
  next: number;
  hasEnded: boolean;
}

/** The commits of whole groups of events, in the order in which they arrived. */
export function commitsOf(events: readonly LiveEvent[]): FeedCommit[] {
  const groups = new Map<number, CommitLiveEvent[]>();
  for (const event of events) {
    if (!isOutput(event)) groups.set(event.meta.commit, [...(groups.get(event.meta.commit) ?? []), event]);
  }
  return [...groups].flatMap(([seq, group]) => {
    const [first] = group;
    if (!first || new Set(group.map(({ meta }) => meta.index)).size < first.meta.of) return [];
    const payloads = new Map(group.map(({ meta, payload }) => [meta.event_index, payload]));
    const inOrder = [...payloads].sort(([a], [b]) => a - b).map(([, payload]) => payload);
    return [{ seq, at: first.timestamp, events: inOrder }];
  });
}

/**
 * One run as a client follows it. The number of the last commit decides everything: earlier commits are dropped, the next
 * one is delivered, and if one is missing, all are read over the API. Work is done one after the other.
 */
export class RunWatch {
  readonly #api: Pick<ApiClient, 'call'>;
  readonly #runId: string;
  readonly #handlers: RunHandlers;
  readonly #commands = new Map<string, Command>();
  #last: number;
  #lastEventId: string;
  #status: RunStatus | undefined;
  #isClosed = false;
  #isRefreshQueued = false;
  #work: Promise<void> = Promise.resolve();

  constructor(api: Pick<ApiClient, 'call'>, runId: string, handlers: RunHandlers, since: number) {
    this.#api = api;
    this.#runId = runId;
    this.#handlers = handlers;
    this.#last = since;
    this.#lastEventId = `${runId}:${since}:0`;
  }

  get lastEventId(): string {
    return this.#lastEventId;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Reads what is new over the API. */
  refresh(): void {
    if (this.#isRefreshQueued) return;
    this.#isRefreshQueued = true;
    this.#enqueue(async () => {
      this.#isRefreshQueued = false;
      await this.#readCommits();
      await this.#readOutputs();
    });
  }

  /** The run has this many commits. */
  isAt(commit: number): void {
    this.#enqueue(async () => {
      if (commit > this.#last) await this.#readCommits();
      await this.#readOutputs();
    });
  }

  receive(events: readonly LiveEvent[]): void {
    this.#enqueue(async () => {
      for (const event of events) if (isOutput(event)) await this.#receiveOutput(event);
      for (const commit of commitsOf(events).sort((a, b) => a.seq - b.seq)) await this.#receiveCommit(commit);
      // A commit of which a part is missing.
      const newest = Math.max(0, ...events.map(({ meta }) => ('commit' in meta ? meta.commit : 0)));
      if (newest > this.#last) await this.#readCommits();
    });
  }

  #enqueue(work: () => Promise<void>): void {
    this.#work = this.#work.then(async () => {
      if (this.#isClosed) return;
      try {
        await work();
      } catch (error) {
        if (!this.#isClosed) this.#handlers.onError?.(error);
      }
    });
  }

  async #receiveCommit(commit: FeedCommit): Promise<void> {
    if (commit.seq === this.#last + 1) await this.#deliver(commit);
    else if (commit.seq > this.#last) await this.#readCommits();
  }

  async #readCommits(): Promise<void> {
    for (;;) {
      const params = { id: this.#runId };
      const page = await this.#api.call('GET /api/v1/runs/{id}/events', { params, query: { since: this.#last } });
      if (this.#isClosed) return;
      for (const commit of page.commits) if (commit.seq === this.#last + 1) await this.#deliver(commit);
      if (page.more && page.commits.length > 0) continue;
      return this.#setStatus(page.status);
    }
  }

  async #deliver(commit: FeedCommit): Promise<void> {
    for (const event of commit.events) {
      if (event.type === 'step.command_ended') await this.#endCommand(event);
    }
    if (this.#isClosed) return;
    this.#last = commit.seq;
    this.#lastEventId = eventsOf(this.#runId, commit).at(-1)?.id ?? this.#lastEventId;
    this.#handlers.onCommit(commit);
    for (const event of commit.events) {
      if (event.type === 'step.assigned') this.#command(event.index, event.leaseVersion, event.step);
      if (event.type === 'run.status_changed') this.#setStatus(event.to);
    }
  }

  #setStatus(status: RunStatus): void {
    if (this.#isClosed || this.#status === status) return;
    this.#status = status;
    this.#handlers.onStatus?.(status);
  }

  #command(stepIndex: number, leaseVersion: number, step?: string): Command {
    const key = `${stepIndex}.${leaseVersion}`;
    const known = this.#commands.get(key) ?? { stepIndex, leaseVersion, step, next: 0, hasEnded: false };
    known.step ??= step;
    this.#commands.set(key, known);
    return known;
  }

  async #receiveOutput(event: OutputLiveEvent): Promise<void> {
    const command = this.#command(event.meta.step_index, event.meta.lease_version);
    const { stream_seq } = event.payload;
    if (stream_seq === command.next) this.#deliverOutput(command, event);
    else if (stream_seq > command.next) await this.#readOutput(command);
  }

  #deliverOutput(command: Command, event: OutputLiveEvent): void {
    if (this.#isClosed) return;
    command.next = event.payload.stream_seq + 1;
    this.#handlers.onOutput?.({ ...event, step: command.step });
  }

  /** What a command printed comes before its end. */
  async #endCommand({
    index,
    leaseVersion,
    step,
  }: {
    index: number;
    leaseVersion: number;
    step: string;
  }): Promise<void> {
    const command = this.#command(index, leaseVersion, step);
    await this.#readOutput(command);
    command.hasEnded = true;
  }

  async #readOutputs(): Promise<void> {
    for (const command of this.#commands.values()) if (!command.hasEnded) await this.#readOutput(command);
  }

  async #readOutput(command: Command): Promise<void> {
    if (!this.#handlers.onOutput || command.hasEnded) return;
    for (;;) {
      const { stepIndex, leaseVersion, next } = command;
      const part = await this.#api.call('GET /api/v1/runs/{id}/steps/{index}/output', {
        params: { id: this.#runId, index: String(stepIndex) },
        query: { since: next, lease: leaseVersion },
      });
      command.step ??= part.step;
      for (const chunk of part.chunks) {
        if (chunk.seq !== command.next) continue;
        this.#deliverOutput(command, outputEventOf({ runId: this.#runId, stepIndex, leaseVersion }, chunk));
      }
      if (part.complete) command.hasEnded = true;
      if (!part.more || part.chunks.length === 0 || this.#isClosed) return;
    }
  }
}
