import { CountersignError } from '../../run/errors.ts';
import { NOT_DIRECT } from './direct-evaluation.ts';
import { limitExceeded, plainResult } from './evaluate.ts';
import { CONTEXT_MAX_CHARACTERS, contextFor, planOf } from './expression-plan.ts';
import type { EvaluationJob, ExpressionProcess, JobEnd } from './expression-process.ts';
import type { Budget, Evaluation, Expressions } from './expressions.ts';

/** All expressions of one template together. */
export const EVALUATION_MAX_MS = 1_000;
/** What they give together; a step's input is no larger. */
const RESULTS_MAX_BYTES = 1024 * 1024;
/** Two, so that a tenant whose expression takes all of its time keeps nobody else waiting. */
const PROCESSES_MAX = 2;
/** A job whose process was ended by somebody else is done again, this often in all. */
const TRIES_MAX = 2;

type Ended = JobEnd | { exceeded: 'budget' };

interface QueuedJob extends EvaluationJob {
  budget: Budget;
  resolve(end: Ended): void;
  reject(error: unknown): void;
}

export interface PoolPorts {
  start(): ExpressionProcess;
  now(): number;
}

/**
 * Evaluates expressions in processes of their own, which are ended when they take too much time or memory; most never get
 * there, because they are evaluated directly. Tenants take turns, and each has one process at a time.
 */
export class ExpressionPool implements Expressions {
  readonly #ports: PoolPorts;
  readonly #queues = new Map<string, QueuedJob[]>();
  readonly #busy = new Set<string>();
  #idle: ExpressionProcess[] = [];

  constructor(ports: PoolPorts) {
    this.#ports = ports;
  }

  async evaluate({ tenant, sources, context, budget }: Evaluation): Promise<unknown[]> {
    const values = new Array<unknown>(sources.length);
    const others: number[] = [];
    let leftBytes = RESULTS_MAX_BYTES;
    for (const [index, source] of sources.entries()) {
      const { direct } = planOf(source);
      const value = direct ? direct(context) : NOT_DIRECT;
      if (value === NOT_DIRECT) {
        others.push(index);
        continue;
      }
      const plain = plainResult(source, value);
      leftBytes -= plain.bytes;
      if (leftBytes < 0)
        throw limitExceeded(source, 'it and the expressions beside it give more than fits into a step');
      values[index] = plain.value;
    }
    if (others.length > 0) {
      const wanted = others.map((index) => sources[index] ?? '');
      const given = await this.#evaluateApart({ tenant, sources: wanted, context, budget }, leftBytes);
      for (const [place, index] of others.entries()) values[index] = given[place];
    }
    return values;
  }

  async #evaluateApart(
    { tenant, sources, context: all, budget = { leftMs: EVALUATION_MAX_MS, eachMs: EVALUATION_MAX_MS } }: Evaluation,
    resultsMaxBytes: number,
  ): Promise<unknown[]> {
    const [first = ''] = sources;
    const references = sources.flatMap((source) => planOf(source).references);
    const context = contextFor(references, all);
    if (context === undefined) {
      const why = `it looks at more than ${CONTEXT_MAX_CHARACTERS} characters of the trigger and earlier steps`;
      throw limitExceeded(first, `${why}; name the values it needs`);
    }
    for (let tries = 1; ; tries += 1) {
      const job = { sources, context, nowMs: this.#ports.now(), resultsMaxBytes, budget };
      const end = await this.#queued(tenant, job);
      if ('reply' in end) {
        if ('values' in end.reply) return end.reply.values;
        throw new CountersignError(end.reply.failure.code, end.reply.failure.message);
      }
      if ('exceeded' in end) throw limitExceeded(first, whatIsExceeded(end.exceeded, sources.length));
      if (tries >= TRIES_MAX) throw limitExceeded(first, `the process that evaluates it ends (${end.died})`);
    }
  }

  #queued(tenant: string, job: Omit<QueuedJob, 'resolve' | 'reject'>): Promise<Ended> {
    const { promise, resolve, reject } = Promise.withResolvers<Ended>();
    const queue = this.#queues.get(tenant) ?? [];
    queue.push({ ...job, resolve, reject });
    this.#queues.set(tenant, queue);
    this.#next();
    return promise;
  }

  /** Starts what can be started: of the tenants without a process, the one that has waited longest. */
  #next(): void {
    while (this.#busy.size < PROCESSES_MAX) {
      const [tenant, queue] = [...this.#queues].find(([each]) => !this.#busy.has(each)) ?? [];
      const job = queue?.shift();
      if (tenant === undefined || !job) return;
      // To the end of the line, or out of it.
      this.#queues.delete(tenant);
      if (queue && queue.length > 0) this.#queues.set(tenant, queue);
      this.#busy.add(tenant);
      void this.#perform(tenant, job);
    }
  }

  async #perform(tenant: string, job: QueuedJob): Promise<void> {
    const { budget, resolve, reject, ...asked } = job;
    const maxMs = Math.min(budget.eachMs, budget.leftMs);
    let process: ExpressionProcess | undefined;
    try {
      if (maxMs > 0) {
        process = this.#takeIdle() ?? this.#ports.start();
        const { end, tookMs } = await process.perform(asked, maxMs);
        budget.leftMs -= tookMs;
        resolve(end);
      } else resolve({ exceeded: 'budget' });
    } catch (error) {
      reject(new Error('the process that evaluates expressions could not be started', { cause: error }));
    } finally {
      if (process?.isUsable) this.#idle.push(process);
      else process?.stop();
      this.#busy.delete(tenant);
      this.#next();
    }
  }

  /** One may have ended while it waited, for reasons that are not those of the next expression: it is passed over. */
  #takeIdle(): ExpressionProcess | undefined {
    this.#idle = this.#idle.filter(({ isUsable }) => isUsable);
    return this.#idle.pop();
  }

  /** Ends the processes that wait for work. */
  stop(): void {
    for (const process of this.#idle) process.stop();
    this.#idle = [];
  }
}

function whatIsExceeded(limit: 'time' | 'memory' | 'budget', count: number): string {
  const which = count > 1 ? `one of ${count} expressions` : 'it';
  if (limit === 'time') return `${which} takes too long`;
  if (limit === 'memory') return `${which} takes too much memory`;
  return 'the expressions evaluated with it have used up the time for all';
}
