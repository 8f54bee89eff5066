import type { AttemptDeadline, RequestToSend } from '../connectors/attempt-deadline.ts';
import { EXCHANGE_TIMEOUT_MS } from '../connectors/exchange.ts';
import { TargetRefused } from '../connectors/target-errors.ts';
import { CountersignError } from '../run/errors.ts';
import { mayStillSend } from '../run/lease.ts';
import type { Lease } from '../run/step.ts';
import type { Worker } from '../worker/worker.ts';

/** Kept back from every attempt for the commit of its outcome. */
const TIME_FOR_THE_COMMIT_MS = 3_000;
/** A write is sent if a target that is not slow has time to answer; if its answer comes too late, the next attempt looks for it. */
const TIME_FOR_AN_ANSWER_MS = 5_000;
/** A step may read and write: two requests and the commit. What else it has to ask for must fit in the same time. */
const TIME_FOR_A_STEP_MS = 2 * EXCHANGE_TIMEOUT_MS + TIME_FOR_THE_COMMIT_MS;

/** False when too little of this invocation is left to take on another step. */
export const hasTime = ({ timeLeftMs }: Pick<Worker, 'timeLeftMs'>): boolean => timeLeftMs() > TIME_FOR_A_STEP_MS;

/**
 * One attempt's time. Nothing is sent that could still be on its way when somebody else takes the lease over, and no write
 * whose answer this function would hardly live to see. Without a lease (a look before people are asked) only
 * the function's own time counts.
 */
export class AttemptTime implements AttemptDeadline {
  readonly #worker: Pick<Worker, 'clock' | 'timeLeftMs'>;
  readonly #lease: Lease | undefined;
  #writesSent = 0;

  constructor(worker: Pick<Worker, 'clock' | 'timeLeftMs'>, lease?: Lease) {
    this.#worker = worker;
    this.#lease = lease;
  }

  /** Whether a request that changes something has left. */
  get hasSentAWrite(): boolean {
    return this.#writesSent > 0;
  }

  allowMs({ system, writes, timeoutMs }: RequestToSend): number {
    if (this.#lease && !mayStillSend(this.#lease, this.#worker.clock.now())) {
      const message = `the lease until ${this.#lease.expiresAt} leaves no time to ask ${system}; nothing more is sent`;
      throw new CountersignError('LEASE_LOST', message);
    }
    const leftMs = this.#worker.timeLeftMs() - TIME_FOR_THE_COMMIT_MS;
    if (leftMs < (writes ? TIME_FOR_AN_ANSWER_MS : 1)) {
      const message = `too little time is left to ask ${system}, because earlier requests of this attempt were slow`;
      throw new TargetRefused(message, { retryable: true });
    }
    if (writes) this.#writesSent += 1;
    return Math.min(timeoutMs, leftMs);
  }

  requestNotSent(): void {
    this.#writesSent = Math.max(0, this.#writesSent - 1);
  }
}
