import type { AgentHints, AgentRegistry } from '../agents/agent-registry.ts';
import type { AssignmentSigner } from '../agents/sign-assignment.ts';
import type { Connections } from '../connectors/connections.ts';
import type { Ids } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Environment, Policy } from '../policy/policy.ts';
import type { InvocationTime } from '../proposal/attempt-time.ts';
import type { IntentReceipt, TouchedState } from '../run/receipt.ts';
import type { RunningStep } from '../run/step.ts';
import type { FollowUp } from '../run-changes/commit-run.ts';
import type { RunChanger } from '../run-changes/run-changer.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import type { Executor } from './5-executor.ts';

/** The ports of the worker. */
export interface Worker extends RunChanger, InvocationTime {
  definitions: Pick<Definitions, 'workflow' | 'settings' | 'people' | 'profiles' | 'configuration'>;
  /** Decides before every call to a target. */
  policy: Policy;
  connections: Connections;
  expressions: Expressions;
  /** The kind of this stage. */
  environment: Environment;
  ids: Ids;
  random: () => number;
  /** Calls `run` at this interval until the returned function is called. */
  every: (ms: number, run: () => void) => () => void;
  executorFor: (tool: string) => Executor;
  agents: AgentRegistry;
  /** The agent of each tenant that was offered a command last: the next search begins after it. Absent: with the first. */
  lastOffered?: Map<string, string>;
  hints: AgentHints;
  assignmentSigner: AssignmentSigner;
  /** Signs the tokens of sessions. */
  sessionSecret?: () => Promise<string>;
  /** The URL of this stage's API, for sessions that need no connection. */
  ownUrl?: string;
}

/** A step whose lease and intent are committed: its executor may perform it. */
export interface ClaimedStep {
  step: RunningStep;
  receipt: IntentReceipt;
  open?: OpenAttempt;
  /** Of the run. */
  salt?: string;
  /** The span of this attempt, for requests. */
  traceparent?: string;
}

/** An earlier attempt that may have changed the target. */
export interface OpenAttempt {
  since: string;
  /** The values before that attempt, if they are known. */
  before?: TouchedState;
  /** Only probe for the earlier attempt: a write that could happen twice must not be sent again. */
  probeOnly: boolean;
  /** Blast radius medium or high: if the write was not made, people must approve before it is sent again. */
  asksFirst?: boolean;
}

/** What follows a commit of the worker. */
export interface Claims extends FollowUp {
  /** The steps that the commit claims for this worker. */
  claimed: ClaimedStep[];
}
