import type { Connections } from '../connectors/connections.ts';
import type { Clock, Ids, Log } from '../entry/ports.ts';
import type { OutboxDispatcher, OutboxEntry } from '../outbox/outbox.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { RunDraft } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import type { Run, Trigger } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import type { RunningStep, Step } from '../run/step.ts';
import type { Workflow } from '../workflow/workflow.ts';
import type { StepQueue } from './step-queue.ts';

/** What a worker works with. */
export interface Worker {
  runs: RunStore;
  definitions: Pick<Definitions, 'workflow'>;
  connections: Connections;
  queue: StepQueue;
  outbox: OutboxDispatcher;
  clock: Clock;
  ids: Ids;
  random: () => number;
  log: Log;
  /** False when too little of this invocation is left to take on another step. */
  hasTime: () => boolean;
}

/** A run as this worker last knew it: the newest commit it read or made itself. */
export interface RunState {
  run: Run;
  trigger: Trigger;
  workflow: Workflow;
  steps: ReadonlyMap<number, Step>;
}

/** A step this worker holds the lease of, with its intent committed, ready to be performed. */
export interface HeldStep {
  state: RunState;
  step: RunningStep;
  receipt: Receipt & { outcome: 'intent' };
  /** An earlier attempt may have had its effect at the target. */
  unsettled: boolean;
}

/** One commit to be made, and what follows once it is. */
export interface Plan {
  draft: RunDraft;
  /** The steps as they are after this commit. */
  steps: ReadonlyMap<number, Step>;
  /** The step whose lease the commit hands to this worker. */
  hold?: Omit<HeldStep, 'state'>;
  /** Ask for the run to be looked at again after this long. */
  wakeAfterMs?: number;
  /** Effects promised by the commit, to be sent on the fast path. */
  promises: OutboxEntry[];
}

/** Receipts found to hold a key that a plan wanted: the plan is made again with them in view. */
export type HeldReceipts = ReadonlyMap<string, Receipt>;
