import { CountersignError } from '../../run/errors.ts';
import { NOT_DIRECT } from './direct-evaluation.ts';
import { limitExceeded, plainResult } from './evaluate.ts';
import { CONTEXT_MAX_CHARACTERS, contextFor, planOf } from './expression-plan.ts';
import type { EvaluationJob, ExpressionProcess, JobEnd } from './expression-process.ts';
import type { Budget, Evaluation, Expressions } from './expressions.ts';

/** All expressions of one template together. */
export const EVALUATION_MAX_MS = 1_000;
/** The maximum size of a step's input. */
const RESULTS_MAX_BYTES = 1024 * 1024;
/** Two, so that one tenant's slow expression does not block other tenants. */
const PROCESSES_MAX = 2;
/** Attempts for a job whose process ended unexpectedly. */
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
 * Evaluates expressions in child processes, which are ended when they exceed limits of time or memory. Most expressions are
 * evaluated directly instead. Tenants take turns; each uses one process at a time.
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
      if (leftBytes < 0) throw limitExceeded(source, 'the expressions of this step return too much data');
      values[index] = plain.value;
    }
    if (others.length > 0) {
      const wanted = others.map((index) => sources[index] ?? '');
      const given = await this.#evaluateInProcess({ tenant, sources: wanted, context, budget }, leftBytes);
      for (const [place, index] of others.entries()) values[index] = given[place];
    }
    return values;
  }

  async #evaluateInProcess(
    { tenant, sources, context: all, budget = { leftMs: EVALUATION_MAX_MS, eachMs: EVALUATION_MAX_MS } }: Evaluation,
    resultsMaxBytes: number,
  ): Promise<unknown[]> {
    const [first = ''] = sources;
    const references = sources.flatMap((source) => planOf(source).references);
    const context = contextFor(references, all);
    if (context === undefined) {
      const why = `it reads more than ${CONTEXT_MAX_CHARACTERS} characters of the trigger and earlier steps`;
      throw limitExceeded(first, why, 'refer to the needed values by name');
    }
    for (let tries = 1; ; tries += 1) {
      const job = { sources, context, nowMs: this.#ports.now(), resultsMaxBytes, budget };
      const end = await this.#queued(tenant, job);
      if ('reply' in end) {
        if ('values' in end.reply) return end.reply.values;
        throw new CountersignError(end.reply.failure.code, end.reply.failure.message);
      }
      if ('exceeded' in end) {
        // The expression that is named used none of the time.
        if (end.exceeded === 'budget') throw limitExceeded(first, BUDGET_EXCEEDED, 'simplify them');
        throw limitExceeded(first, whatIsExceeded(end.exceeded, sources.length));
      }
      if (tries >= TRIES_MAX) throw limitExceeded(first, `the evaluation process ended (${end.died})`);
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

  /** Starts the job of the tenant that has waited longest and has no process. */
  #next(): void {
    while (this.#busy.size < PROCESSES_MAX) {
      const [tenant, queue] = [...this.#queues].find(([each]) => !this.#busy.has(each)) ?? [];
      const job = queue?.shift();
      if (tenant === undefined || !job) return;
      // The tenant moves to the end of the queue if it has more jobs.
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
      reject(new Error('the evaluation process could not be started', { cause: error }));
    } finally {
      if (process?.isUsable) this.#idle.push(process);
      else process?.stop();
      this.#busy.delete(tenant);
      this.#next();
    }
  }

  /** Skips processes that ended while idle. */
  #takeIdle(): ExpressionProcess | undefined {
    this.#idle = this.#idle.filter(({ isUsable }) => isUsable);
    return this.#idle.pop();
  }

  /** Ends the idle processes. */
  stop(): void {
    for (const process of this.#idle) process.stop();
    this.#idle = [];
  }
}

const BUDGET_EXCEEDED = 'the other expressions left no time for it';

function whatIsExceeded(limit: 'time' | 'memory', count: number): string {
  const which = count > 1 ? `one of ${count} expressions` : 'it';
  return limit === 'time' ? `${which} takes too long` : `${which} takes too much memory`;
}
