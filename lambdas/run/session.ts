import type { Step, WaitingExternalStep } from './step.ts';

/** One tool that a session may propose calls of, and the input that it cannot change. */
export interface AllowedAction {
  tool: string;
  with?: Record<string, unknown>;
  /** A higher risk than that of the tool. */
  risk?: ActionRisk;
}

/** The risks of connectors/connector.ts. */
export type ActionRisk = 'low' | 'medium' | 'high';

/** Why a call of a session was refused. */
export const ACTION_REFUSALS = ['tool_not_allowed', 'input_not_allowed', 'too_many_actions'] as const;
export type ActionRefusal = (typeof ACTION_REFUSALS)[number];

/** The session of a step. It stays on the row of the step after its end. */
export interface SessionFacts {
  /** The configuration that says where it runs. `session:NAME` is a maker of what it proposes. */
  configuration: string;
  /** Its id at the provider. */
  sessionId: string;
  /** Where it runs. */
  at?: { url: string; connection: string };
  /** Its command is the session: the run of the command, which has the id of the session. */
  isCommand?: true;
  /** What the session reports its end with. */
  completionId: string;
  startedAt: string;
  /** Its last activity: a heartbeat, an action, a message of the provider. */
  seenAt: string;
  actionsAllowed: AllowedAction[];
  actionsMax: number;
  /** The runs of its actions, in their order. */
  actions: string[];
  /** Calls that were refused. After `REFUSALS_RECORDED_MAX`, further ones are only counted as a metric. */
  refused: number;
  completion?: SessionCompletion;
}

/** What the session reported. The same completion again changes nothing. */
export interface SessionCompletion {
  hash: string;
  outcome: SessionOutcome;
  at: string;
}

export const SESSION_OUTCOMES = ['succeeded', 'failed', 'needs_human'] as const;
export type SessionOutcome = (typeof SESSION_OUTCOMES)[number];

/** A session without activity for this time counts as lost. */
export const SESSION_SILENT_MS = 30 * 60_000;
/** Activity is stored if the last stored one is older: each is a commit. */
export const SEEN_STORED_EVERY_MS = 5 * 60_000;
/** By default, and at most: the steps of a run keep the ids of all actions. */
export const ACTIONS_DEFAULT = 20;
export const ACTIONS_MAX = 100;
/** A session that is refused again and again must not make the history of its run endless. */
export const REFUSALS_RECORDED_MAX = 20;

export type OpenSessionStep = WaitingExternalStep & {
  awaits: Extract<WaitingExternalStep['awaits'], { kind: 'session' }>;
  session: SessionFacts;
};

/** The session may act and complete. */
export const hasOpenSession = (step: Step | undefined): step is OpenSessionStep =>
  step?.status === 'waiting_external' && step.awaits.kind === 'session' && step.session !== undefined;

/** The name under which a session acts. No person can have such an id. */
export const sessionActor = ({ configuration }: Pick<SessionFacts, 'configuration'>): string =>
  `session:${configuration}`;
