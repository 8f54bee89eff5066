import type { Readable } from 'node:stream';
import { OUTPUT_CHUNKS_PER_REQUEST_MAX } from '../lambdas/agents/agent-terms.ts';
import type { OutputChunk } from '../lambdas/agents/protocol.ts';
import type { OutputBuffer, StreamName } from './output-buffer.ts';
import { type RuntimeClient, RuntimeRefused } from './runtime-client.ts';
import type { System } from './system.ts';

/** Output waits this long for more, so that a chatty command does not cause a request for each line. The first is sent at once. */
const COLLECT_MS = 1_000;
const RETRY_MS = 1_000;
/** The command waits while more than this is unsent, and continues at half of it. */
const WAITING_MAX_CHARACTERS = 1024 * 1024;

type Send = (chunks: OutputChunk[]) => ReturnType<RuntimeClient['output']>;

/** Sends the output of one command, in order, and slows the command down if the runtime is slower. */
export class OutputSender {
  readonly #buffer: OutputBuffer;
  readonly #send: Send;
  readonly #system: System;
  readonly #streams: Readable[] = [];
  readonly #sending: Promise<void>;
  /** Aborted when the command has ended: nothing more will come. */
  readonly #end = new AbortController();
  #wake = Promise.withResolvers<void>();
  #isStopped = false;

  constructor(buffer: OutputBuffer, send: Send, system: System) {
    this.#buffer = buffer;
    this.#send = send;
    this.#system = system;
    this.#sending = this.#run();
  }

  attach(name: StreamName, stream: Readable): void {
    this.#streams.push(stream);
    stream.on('data', (bytes: Buffer) => {
      this.#buffer.take(name, bytes);
      if (this.#buffer.waiting > WAITING_MAX_CHARACTERS) for (const each of this.#streams) each.pause();
      this.#wake.resolve();
    });
  }

  status(line: string): void {
    this.#buffer.status(line);
    this.#wake.resolve();
  }

  /** Resolves when all output is stored, or cannot be. */
  async finish(): Promise<void> {
    this.#buffer.end();
    this.#end.abort();
    this.#wake.resolve();
    await this.#sending;
  }

  /** Sends nothing more: the lease is lost. */
  stop(): void {
    this.#isStopped = true;
    this.#buffer.stop();
    this.#resume();
    this.#wake.resolve();
  }

  async #run(): Promise<void> {
    let isFirst = true;
    while (!this.#isStopped) {
      const chunks = this.#buffer.chunks(OUTPUT_CHUNKS_PER_REQUEST_MAX);
      if (chunks.length === 0) {
        if (this.#end.signal.aborted) return;
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
        if (!isFirst) await this.#system.sleep(COLLECT_MS, this.#end.signal);
        continue;
      }
      isFirst = false;
      const waitMs = await this.#sendOnce(chunks);
      if (waitMs > 0) await this.#system.sleep(waitMs);
    }
  }

  async #sendOnce(chunks: OutputChunk[]): Promise<number> {
    try {
      const { next_seq, wait_ms, full } = await this.#send(chunks);
      this.#buffer.confirm(next_seq);
      if (full) this.stop();
      this.#resume();
      const isStored = next_seq > (chunks.at(0)?.stream_seq ?? 0);
      return isStored ? wait_ms : Math.max(wait_ms, RETRY_MS);
    } catch (error) {
      if (error instanceof RuntimeRefused) {
        this.stop();
        return 0;
      }
      return RETRY_MS;
    }
  }

  #resume(): void {
    if (this.#buffer.waiting <= WAITING_MAX_CHARACTERS / 2) for (const each of this.#streams) each.resume();
  }
}
