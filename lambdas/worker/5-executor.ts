import { SESSION_TOOL } from '../connectors/session/session.ts';
import type { ErrorCode, RecordedError } from '../run/errors.ts';
import type { UnassignedBecause } from '../run/events/agent-events.ts';
import { isAgentTool, type LeaseTimes } from '../run/lease.ts';
import type { CommandRecord, Cost, Reversal, TouchedState, WriteResult } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { FlagName } from '../run/settings/flags.ts';
import type { RunningStep, WaitingExternalStep } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { agentExecutor } from './agent/agent-executor.ts';
import { inProcessExecutor } from './in-process-executor.ts';
import { sessionExecutor } from './session/session-executor.ts';
import type { ClaimedStep, Worker } from './worker.ts';

/** What an agent reported about a command that did not succeed. It may have changed something before. */
interface EndedCommand {
  command?: CommandRecord;
  reversal?: Reversal;
}

/** The outcome of a call. `refused`: the write was certainly not made. `unknown`: it may have been made. */
export type StepOutcome =
  | { kind: 'done'; result: WriteResult }
  | ({
      kind: 'refused';
      error: RecordedError;
      retryable: boolean;
      retryAfterMs?: number;
      cost?: Cost;
      /** No request that changes the target was sent. */
      neverSent?: true;
      /** The write was not sent because this flag is off or could not be read. This does not count as an attempt: the step waits. */
      heldBy?: FlagName;
    } & EndedCommand)
  | ({
      kind: 'unknown';
      error: RecordedError;
      retryable: boolean;
      before?: TouchedState;
      /** An earlier attempt may have worked, and this one was held. */
      heldBy?: FlagName;
    } & EndedCommand)
  /** No agent has run the command. It is assigned again, unless `failsWith` says why that would not help. */
  | {
      kind: 'unassigned';
      because: UnassignedBecause;
      reason: string;
      agentId?: string;
      assignmentId?: string;
      failsWith?: ErrorCode;
    };

export type Dispatched =
  | StepOutcome
  /** Another process performs the step and reports its outcome later (6-report-outcome.ts). */
  | { kind: 'dispatched' }
  /** The lease ended before the write was sent: another worker continues. */
  | { kind: 'lease_lost'; error: RecordedError };

/** Performs claimed steps. */
export interface Executor {
  /** How long its leases last, how often it renews them, and when an unknown outcome may be probed. */
  readonly lease: LeaseTimes;
  /** Never throws: a failure is an outcome. */
  dispatch(worker: Worker, run: { tenant: string; runId: string }, claimed: ClaimedStep): Promise<Dispatched>;
  /** Completes the input before it is proposed, so that policy and people decide on all of it. */
  prepare?(worker: Worker, draft: RunDraft, input: unknown): Promise<unknown>;
  /** The call only started work in another system: the step waits for its end. By default the step ends with its call. */
  awaitEnd?(
    stage: Pick<Worker, 'ownUrl'>,
    state: RunState,
    draft: RunDraft,
    claimed: ClaimedStep,
    result: WriteResult,
  ): void;
  /** Checks such a step when its run is processed, and ends it if the work will never complete. */
  checkWaiting?(worker: Worker, draft: RunDraft, step: WaitingExternalStep): Promise<void>;
  /** Of an executor outside the worker, which renews its leases itself: whether it has done so since the state was read. */
  isRenewed?(worker: Worker, draft: RunDraft, step: RunningStep): Promise<boolean>;
  /** Settles a running step whose lease has ended. By default, or if it returns false, a worker takes the step over. */
  endLease?(worker: Worker, state: RunState, draft: RunDraft, step: RunningStep): Promise<boolean>;
}

/** The executor of a tool: agents perform commands, sessions work elsewhere, the worker itself performs everything else. */
export function executorFor(tool: string): Executor {
  if (isAgentTool(tool)) return agentExecutor;
  return tool === SESSION_TOOL ? sessionExecutor : inProcessExecutor;
}
