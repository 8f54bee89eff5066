import type { Connections } from '../connectors/connections.ts';
import type { Clock, Ids, Log } from '../entry/ports.ts';
import type { OutboxDispatcher } from '../outbox/outbox.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Environment, Policy } from '../policy/policy.ts';
import type { TenantSettings } from '../run/caps.ts';
import type { IntentReceipt, TouchedState } from '../run/receipt.ts';
import type { Run, Trigger } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import type { RunningStep, Steps } from '../run/step.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { StepQueue } from './step-queue.ts';

/** What it takes to move a run: to commit a change of it, and to send on what follows. */
export interface Mover {
  runs: RunStore;
  definitions: Pick<Definitions, 'workflow' | 'settings'>;
  queue: StepQueue;
  outbox: OutboxDispatcher;
  clock: Clock;
  log: Log;
}

/** What a worker works with. */
export interface Worker extends Mover {
  definitions: Pick<Definitions, 'workflow' | 'settings' | 'people'>;
  /** Decides before every call to the outside. */
  policy: Policy;
  connections: Connections;
  expressions: Expressions;
  /** What kind of stage this is. */
  environment: Environment;
  ids: Ids;
  random: () => number;
  /** Calls again and again until the returned function is called. */
  every: (ms: number, run: () => void) => () => void;
  /** What is left of this invocation. */
  timeLeftMs: () => number;
}

/** A run as this worker last knew it: the newest commit it read or made itself. */
export interface RunState {
  run: Run;
  trigger: Trigger;
  workflow: PublishedWorkflow;
  settings: TenantSettings;
  steps: Steps;
}

/** A step this worker holds the lease of, with its intent committed, ready to be performed. */
export interface HeldStep {
  step: RunningStep;
  receipt: IntentReceipt;
  open?: OpenAttempt;
}

/** An earlier attempt that may have had its effect at the target. */
export interface OpenAttempt {
  since: string;
  /** What was there before it, if that is known. */
  before?: TouchedState;
  /** Its attempts are used up: what it did is looked for, and nothing is sent again that could do it twice. */
  lookOnly: boolean;
  /** It reaches far: if it was not made, people are asked before it is sent again. */
  asksFirst?: boolean;
}

/** What a draft leads to once it is committed. */
export interface FollowUp {
  /** Steps whose lease the commit hands to this worker. */
  holds: HeldStep[];
  /** Ask for the run to be looked at again after this long. */
  wakeAfterMs?: number;
}
