import type { RecordedError } from '../run/errors.ts';
import type { LeaseTimes } from '../run/lease.ts';
import type { Cost, TouchedState, WriteResult } from '../run/receipt.ts';
import { inProcessExecutor } from './in-process-executor.ts';
import type { ClaimedStep, Worker } from './worker.ts';

/** The outcome of a call. `refused`: the write was certainly not made. `unknown`: it may have been made. */
export type StepOutcome =
  | { kind: 'done'; result: WriteResult }
  | {
      kind: 'refused';
      error: RecordedError;
      retryable: boolean;
      retryAfterMs?: number;
      cost?: Cost;
      /** No request that changes the target was sent. */
      neverSent?: true;
    }
  | { kind: 'unknown'; error: RecordedError; retryable: boolean; before?: TouchedState };

export type Dispatched =
  | StepOutcome
  /** Somebody else performs the step and reports its outcome later (6-report-outcome.ts). */
  | { kind: 'dispatched' }
  /** The lease ended before the write was sent: another worker continues. */
  | { kind: 'lease_lost'; error: RecordedError };

/** Performs claimed steps. */
export interface Executor {
  /** How long its leases last, how often it renews them, and when an unknown outcome may be probed. */
  readonly lease: LeaseTimes;
  /** Never throws: a failure is an outcome. */
  dispatch(worker: Worker, run: { tenant: string; runId: string }, claimed: ClaimedStep): Promise<Dispatched>;
}

/** The executor of a tool. The worker itself performs every tool that exists today. */
export const executorFor = (_tool: string): Executor => inProcessExecutor;
