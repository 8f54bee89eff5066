import type { Connections } from '../connectors/connections.ts';
import type { Ids } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Environment, Policy } from '../policy/policy.ts';
import type { IntentReceipt, TouchedState } from '../run/receipt.ts';
import type { RunningStep } from '../run/step.ts';
import type { RunChanger } from '../run-changes/run-changer.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';

/** What a worker works with. */
export interface Worker extends RunChanger {
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

/** A step this worker holds the lease of, with its intent committed, ready to be performed. */
export interface ClaimedStep {
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
  probeOnly: boolean;
  /** It reaches far: if it was not made, people are asked before it is sent again. */
  asksFirst?: boolean;
}

/** What a draft leads to once it is committed. */
export interface FollowUp {
  /** Steps whose lease the commit hands to this worker. */
  holds: ClaimedStep[];
  /** Ask for the run to be looked at again after this long. */
  wakeAfterMs?: number;
}
