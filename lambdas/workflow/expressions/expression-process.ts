import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ErrorCode } from '../../run/errors.ts';

/** What the process is asked: everything it knows is in here. */
export interface EvaluationJob {
  sources: readonly string[];
  context: string;
  nowMs: number;
  resultsMaxBytes: number;
}

export type JobReply = { values: unknown[] } | { failure: { code: ErrorCode; message: string } };

/** How a job ended: with a reply, or because the process was ended or ended itself. */
export type JobEnd = { reply: JobReply } | { exceeded: 'time' | 'memory' } | { died: string };

/** Real time, and a timer. */
export interface Stopwatch {
  nowMs(): number;
  after(ms: number, act: () => void): () => void;
}

/** Beside the bundle in a function, beside this file in a checkout. */
const PROGRAM = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? './evaluator.child.ts' : './evaluator.mjs', import.meta.url),
);

/** Of a fresh process, about 45 MB; a function has 512, with two of these. */
const MEMORY_MAX_BYTES = 160 * 1024 * 1024;
/** V8 ends the process when its heap is full. */
const HEAP_OPTIONS = ['--max-old-space-size=64', '--max-semi-space-size=4'];
/** How V8 ends a process that has no memory, or no stack, left. */
const OUT_OF_MEMORY: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGSEGV', 'SIGILL'];
/** If this process dies, nobody ends a job for it: the kernel does, once it has taken this long. */
const CPU_MAX_SECONDS = 120;
/** A process that has worked this long is replaced, well before the kernel would end it. */
const WORKED_MAX_MS = 30_000;
const WATCHED_EVERY_MS = 20;

const BOUNDED_START = `ulimit -c 0; ulimit -t ${CPU_MAX_SECONDS}; exec "$0" "$@"`;

/** One process that evaluates expressions: it has no environment, and is ended when a job takes too much. */
export class ExpressionProcess {
  readonly #child: ChildProcess;
  readonly #stopwatch: Stopwatch;
  readonly #ready: Promise<void>;
  #finish: ((end: JobEnd) => void) | undefined;
  #workedMs = 0;
  #ended = false;

  constructor(stopwatch: Stopwatch, environment: Record<string, string>) {
    this.#stopwatch = stopwatch;
    this.#child = spawn('/bin/sh', ['-c', BOUNDED_START, process.execPath, ...HEAP_OPTIONS, PROGRAM], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: environment,
    });
    this.#ready = new Promise((resolve, reject) => {
      this.#child.once('message', () => resolve());
      this.#child.once('error', reject);
      this.#child.once('exit', (code, signal) => reject(new Error(`it ended as it began: ${signal ?? code}`)));
    });
    this.#ready.catch(() => {});
    this.#child.on('message', (reply: JobReply) => this.#finish?.({ reply }));
    this.#child.on('error', (error) => this.#end({ died: error.message }));
    this.#child.on('exit', (code, signal) => {
      const full = OUT_OF_MEMORY.includes(signal);
      this.#end(full ? { exceeded: 'memory' } : { died: `${signal ?? code}` });
    });
    this.#rest();
  }

  /** Whether it can take another job. */
  get isUsable(): boolean {
    return !this.#ended && this.#workedMs < WORKED_MAX_MS;
  }

  /** One job at a time. Rejects only if the process could not be started. */
  async perform(job: EvaluationJob, maxMs: number): Promise<{ end: JobEnd; tookMs: number }> {
    this.#child.ref();
    this.#child.channel?.ref();
    try {
      await this.#ready;
      const { promise, resolve } = Promise.withResolvers<JobEnd>();
      this.#finish = resolve;
      const watch = this.#watch(maxMs);
      this.#child.send(job, (error) => error && this.#end({ died: error.message }));
      const end = await promise;
      watch.stop();
      this.#workedMs += watch.tookMs();
      return { end, tookMs: watch.tookMs() };
    } finally {
      this.#finish = undefined;
      this.#rest();
    }
  }

  stop(): void {
    this.#end({ died: 'it was stopped' });
  }

  /** An idle process keeps nobody from ending. */
  #rest(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  #end(end: JobEnd): void {
    this.#ended = true;
    this.#child.kill('SIGKILL');
    this.#finish?.(end);
  }

  /** Time in which this process itself stood still, as a frozen function does, is not counted. */
  #watch(maxMs: number) {
    const began = this.#stopwatch.nowMs();
    let lookedMs = began;
    let countedMs = 0;
    let cancel = () => {};
    const look = () => {
      const now = this.#stopwatch.nowMs();
      countedMs += Math.min(now - lookedMs, 2 * WATCHED_EVERY_MS);
      lookedMs = now;
      if (countedMs >= maxMs) return this.#end({ exceeded: 'time' });
      if (residentBytes(this.#child.pid) > MEMORY_MAX_BYTES) return this.#end({ exceeded: 'memory' });
      cancel = this.#stopwatch.after(WATCHED_EVERY_MS, look);
    };
    cancel = this.#stopwatch.after(WATCHED_EVERY_MS, look);
    return { stop: () => cancel(), tookMs: () => this.#stopwatch.nowMs() - began };
  }
}

/** As Linux tells it; elsewhere only V8's own limit holds. */
function residentBytes(pid: number | undefined): number {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
