import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ErrorCode } from '../../run/errors.ts';

/** The complete input of the process. */
export interface EvaluationJob {
  sources: readonly string[];
  context: string;
  nowMs: number;
  resultsMaxBytes: number;
}

export type JobReply = { values: unknown[] } | { failure: { code: ErrorCode; message: string } };

/** A reply, an exceeded limit, or the end of the process. */
export type JobEnd = { reply: JobReply } | { exceeded: 'time' | 'memory' } | { died: string };

/** A monotonic clock with a timer. */
export interface Stopwatch {
  nowMs(): number;
  after(ms: number, act: () => void): () => void;
}

/** In a function next to the bundle, in a checkout next to this file. */
const program = () =>
  fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './evaluator.child.ts' : './evaluator.mjs', import.meta.url));

/** A new process has about 45 MB. A function has 512 MB for two processes. */
const MEMORY_MAX_BYTES = 160 * 1024 * 1024;
/** V8 ends the process when its heap is full. */
const HEAP_OPTIONS = ['--max-old-space-size=64', '--max-semi-space-size=4'];
/** Signals with which V8 ends a process without memory or stack. */
const OUT_OF_MEMORY: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGSEGV', 'SIGILL'];
/** If the parent dies, the kernel ends the job after this time. */
const CPU_MAX_SECONDS = 120;
/** A process is replaced after this time, well before the kernel would end it. */
const WORKED_MAX_MS = 30_000;
const CHECK_EVERY_MS = 20;

const BOUNDED_START = `ulimit -c 0; ulimit -t ${CPU_MAX_SECONDS}; exec "$0" "$@"`;

/** A child process that evaluates expressions. It has no environment variables, and is ended when a job exceeds a limit. */
export class ExpressionProcess {
  readonly #child: ChildProcess;
  readonly #stopwatch: Stopwatch;
  readonly #ready: Promise<void>;
  #finish: ((end: JobEnd) => void) | undefined;
  #workedMs = 0;
  #ended = false;

  constructor(stopwatch: Stopwatch, environment: Record<string, string>) {
    this.#stopwatch = stopwatch;
    this.#child = spawn('/bin/sh', ['-c', BOUNDED_START, process.execPath, ...HEAP_OPTIONS, program()], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: environment,
    });
    this.#ready = new Promise((resolve, reject) => {
      this.#child.once('message', () => resolve());
      this.#child.once('error', reject);
      this.#child.once('exit', (code, signal) => reject(new Error(`it ended during its start: ${signal ?? code}`)));
    });
    this.#ready.catch(() => {});
    this.#child.on('message', (reply: JobReply) => this.#finish?.({ reply }));
    this.#child.on('error', (error) => this.#end({ died: error.message }));
    this.#child.on('exit', (code, signal) => {
      const full = OUT_OF_MEMORY.includes(signal);
      this.#end(full ? { exceeded: 'memory' } : { died: `${signal ?? code}` });
    });
    this.#unref();
  }

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
      this.#unref();
    }
  }

  stop(): void {
    this.#end({ died: 'it was stopped' });
  }

  /** An idle child must not keep this process alive. */
  #unref(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  #end(end: JobEnd): void {
    this.#ended = true;
    this.#child.kill('SIGKILL');
    this.#finish?.(end);
  }

  /** Does not count time in which this process was frozen, as Lambda does between invocations. */
  #watch(maxMs: number) {
    const began = this.#stopwatch.nowMs();
    let checkedMs = began;
    let countedMs = 0;
    let cancel = () => {};
    const check = () => {
      const now = this.#stopwatch.nowMs();
      countedMs += Math.min(now - checkedMs, 2 * CHECK_EVERY_MS);
      checkedMs = now;
      if (countedMs >= maxMs) return this.#end({ exceeded: 'time' });
      if (residentBytes(this.#child.pid) > MEMORY_MAX_BYTES) return this.#end({ exceeded: 'memory' });
      cancel = this.#stopwatch.after(CHECK_EVERY_MS, check);
    };
    cancel = this.#stopwatch.after(CHECK_EVERY_MS, check);
    return { stop: () => cancel(), tookMs: () => this.#stopwatch.nowMs() - began };
  }
}

/** From Linux; on other systems only V8's limit applies. */
function residentBytes(pid: number | undefined): number {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
