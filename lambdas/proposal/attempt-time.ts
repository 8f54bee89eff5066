import type { AttemptDeadline, RequestToSend } from '../connectors/attempt-deadline.ts';
import { EXCHANGE_TIMEOUT_MS } from '../connectors/exchange.ts';
import { TargetRefused } from '../connectors/target-errors.ts';
import type { Clock } from '../entry/ports.ts';
import { CountersignError } from '../run/errors.ts';
import { mayStillSend } from '../run/lease.ts';
import type { Run } from '../run/run.ts';
import type { Lease } from '../run/step.ts';
import { stepSpan, traceparentOf } from '../telemetry/trace-context.ts';

/** Reserved in every attempt for the commit of its outcome. */
const TIME_FOR_THE_COMMIT_MS = 3_000;
/** A write is sent only if the target has this long to respond. If the response comes later, the next attempt probes. */
const TIME_FOR_A_RESPONSE_MS = 5_000;
/** A step may read and write: two requests and the commit. All its other requests must fit in the same time. */
const TIME_FOR_A_STEP_MS = 2 * EXCHANGE_TIMEOUT_MS + TIME_FOR_THE_COMMIT_MS;

export interface InvocationTime {
  clock: Clock;
  /** The time that is left of this invocation. */
  timeLeftMs: () => number;
}

/** False when too little of this invocation is left to start another step. */
export const hasTime = ({ timeLeftMs }: Pick<InvocationTime, 'timeLeftMs'>): boolean =>
  timeLeftMs() > TIME_FOR_A_STEP_MS;

/**
 * The time of one attempt. Sends no request that could still be on its way when another worker claims the lease, and no
 * write whose response would come after the end of this invocation. Without a lease (a read before an approval is requested)
 * only the time of the invocation counts.
 */
export class AttemptTime implements AttemptDeadline {
  readonly #invocation: InvocationTime;
  readonly #lease: Lease | undefined;
  readonly traceparent: string | undefined;
  #writesSent = 0;

  constructor(invocation: InvocationTime, { lease, traceparent }: { lease?: Lease; traceparent?: string } = {}) {
    this.#invocation = invocation;
    this.#lease = lease;
    this.traceparent = traceparent;
  }

  get hasSentAWrite(): boolean {
    return this.#writesSent > 0;
  }

  allowMs({ system, writes, timeoutMs }: RequestToSend): number {
    if (this.#lease && !mayStillSend(this.#lease, this.#invocation.clock.now())) {
      const message = `the lease until ${this.#lease.expiresAt} leaves no time to call ${system}; nothing more is sent`;
      throw new CountersignError('LEASE_LOST', message);
    }
    const leftMs = this.#invocation.timeLeftMs() - TIME_FOR_THE_COMMIT_MS;
    if (leftMs < (writes ? TIME_FOR_A_RESPONSE_MS : 1)) {
      const message = `too little time is left to call ${system}, because earlier requests of this attempt were slow`;
      throw new TargetRefused(message, { retryable: true });
    }
    if (writes) this.#writesSent += 1;
    return Math.min(timeoutMs, leftMs);
  }

  requestNotSent(): void {
    this.#writesSent = Math.max(0, this.#writesSent - 1);
  }
}

/** The time of reads before an attempt: for policy, for approvers, or to find a record by its name. */
export const readTime = (
  invocation: InvocationTime,
  run: Pick<Run, 'tenant' | 'runId' | 'traceparent'>,
  stepIndex: number,
): AttemptTime => new AttemptTime(invocation, { traceparent: traceparentOf(run, stepSpan(stepIndex)) });
