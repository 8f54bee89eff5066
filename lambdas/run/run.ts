import * as z from 'zod';
import type { RecordedError } from './errors.ts';
import type { Compensation } from './events/write-events.ts';
import type { NotifiedPlace, RunTerms } from './run-terms.ts';
import type { ActionRisk } from './session.ts';
import type { ValidationMode } from './validation-mode.ts';

export const RUN_SCHEMA_VERSION = 1;

export const ACTIVE_STATUSES = [
  'queued',
  'enriching',
  'ready',
  'running',
  'failed_retryable',
  'waiting_approval',
  'waiting_external',
  'paused',
  'rolling_back',
] as const;
export const TERMINAL_STATUSES = ['succeeded', 'failed_terminal', 'needs_human', 'timed_out', 'canceled'] as const;

export type ActiveStatus = (typeof ACTIVE_STATUSES)[number];
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];
export type RunStatus = ActiveStatus | TerminalStatus;
export const RunStatus = z.enum([...ACTIVE_STATUSES, ...TERMINAL_STATUSES]).meta({ id: 'RunStatus' });

/** A run that has not finished this long after it was accepted ends as `timed_out`. */
export const RUN_DEADLINE_MS = 2 * 60 * 60 * 1000;

/** A running run without a commit for this long is considered lost and is resumed. */
export const INACTIVITY_MAX_MS = 30 * 60 * 1000;

/** Extracted from the trigger without calls to other systems. Shown wherever the run is shown. */
export interface Enrichment {
  title: string;
  actor?: string;
  severity?: string;
  links: string[];
}

interface RunFacts {
  schemaVersion: typeof RUN_SCHEMA_VERSION;
  tenant: string;
  runId: string;
  automation: string;
  /** Runs of a tenant share its capacity by workspace. */
  workspace: string;
  /** Pinned when the run is accepted. A version published later does not change the run. */
  workflow: { name: string; version: number };
  trigger: { source: TriggerSource; event: string; key: string };
  /** Absent if a webhook started the run. */
  request?: RunRequest;
  /** What the run is about, e.g. `github:octo-org/payments#7`. */
  subject?: string;
  enrichment?: Enrichment;
  /** The person who requested the run or caused its event; of an unknown one the hash of their identity. */
  requester?: { person?: string; identityHash?: string };
  /** Random. Digests of values in events begin with it, so that nobody can guess a short value. Not part of evidence. */
  salt?: string;
  /** What the starter gave; from the start of the run on, checked and with defaults (workflow/inputs.ts). */
  inputs?: Record<string, unknown>;
  /** Templates of the automation for the other inputs, until the run starts. */
  inputsFrom?: Record<string, unknown>;
  /** What its automation said when the run was accepted. */
  terms?: RunTerms;
  /** The configuration of its sessions, from the start of the run on. */
  configuration?: string;
  /** The flags that change what a run does, as they were when it started. Rows of older versions do not have it. */
  flags?: Record<string, boolean>;
  /** Where people are notified of its end. */
  notify?: NotifiedPlace[];
  /** W3C trace context of the delivery or request, if it had one: the run is a part of that trace. Not part of evidence. */
  traceparent?: string;
  /** Number and hash of the last commit. The same transaction writes the run row and the commit. */
  seq: number;
  headHash: string;
  createdAt: string;
  updatedAt: string;
  startedAt?: string;
  /** Extended by the time that the run waits for people. */
  deadlineAt: string;
  /** Set while the run waits for people. */
  waitingForPeopleSince?: string;
  /** Set while an approval is past its SLA and others were alerted. */
  approvalOverdueSince?: string;
  /** People who sent the run a signal, requested its rollback, or requested it as a repetition of another run. */
  makers?: string[];
  /** Writes begun so far, counted against the cap. */
  writes: number;
  /** The slot under the tenant's cap while the run is `running`. */
  slot?: Slot;
  /** The slot under the cap of its workflow, also while it is `running`. */
  workflowSlot?: Slot;
  /** The slot under the cap of its automation. */
  automationSlot?: Slot;
  /** Locked from start to end: no other run with the same key starts. */
  concurrencyKey?: string;
  /** A person requested a stop. The run stops when no step is in flight. */
  stopRequest?: StopRequest;
  /** Who canceled it, or rolled it back and canceled it. */
  cancellation?: Cancellation;
  /** How often the run continued from its last commit after its worker was lost, or after a pause. */
  resumeCount?: number;
  /** How many of these after a long time without progress. */
  orphanResumes?: number;
  /** Decisions that were refused and recorded, by approval, person and reason. */
  refusals?: string[];
  /** Set when the rollback began. */
  rollback?: Rollback;
  /** The result of the rollback or cancellation for each write, in that order. */
  compensation?: Compensation[];
  /** This run undoes the writes of a run that has ended. */
  rollbackOf?: RollbackOf;
  /** The person to whom the run is assigned. */
  assignee?: string;
  /** What a person found out and decided after the run had ended without success. */
  resolution?: Resolution;
  /** An owner accepted that the run broke these rules, so that it is sealed as such. */
  brokenRulesAccepted?: { rules: number[]; actor: string; at: string };
  /** The run that undoes the writes of this one, requested after it had ended. */
  rolledBackBy?: string;
}

/** The only fields that change after a run has ended. Its status and everything else stay. */
export const CHANGED_AFTER_END = ['assignee', 'resolution', 'rolledBackBy', 'brokenRulesAccepted'] as const;

export interface RollbackOf {
  runId: string;
  /** The sha256 of its evidence bundle. */
  bundleHash: string;
  /** The ids of its steps whose writes are undone. */
  steps: string[];
}

export const RESOLVED_AS = ['succeeded', 'failed'] as const;
export type ResolvedAs = (typeof RESOLVED_AS)[number];
/** Whether a write of unknown outcome was made. */
export const WRITE_FINDINGS = ['happened', 'did_not'] as const;
export type WriteFinding = (typeof WRITE_FINDINGS)[number];

export interface Resolution {
  outcome: ResolvedAs;
  actor: string;
  at: string;
  reason: string;
  /** By step, for each write whose outcome was unknown. */
  writes: Record<string, WriteFinding>;
}

interface Cancellation {
  actor: string;
  at: string;
  reason?: string;
}

export interface Rollback {
  /** The status of the run after the rollback. */
  endsAs: 'failed_terminal' | 'canceled' | 'succeeded';
  actor: string;
  at: string;
  /** The error that caused the rollback. */
  error?: RecordedError;
}

/** The counter that the slot was taken from and must be returned to. */
export interface Slot {
  shard: number;
  workspace: string;
  /** The workflow, if it is the counter of a workflow. */
  workflow?: string;
}

export interface StopRequest {
  kind: 'cancel' | 'pause' | 'rollback';
  actor: string;
  reason?: string;
  at: string;
}

export type ActiveRun = RunFacts & {
  status: ActiveStatus;
  /** The first step that has not ended. */
  currentStep?: string;
  /** When the sweeper sends the run to a worker, if no message does before. A paused run has none. */
  dueAt?: string;
};
export type TerminalRun = RunFacts & {
  status: TerminalStatus;
  completedAt: string;
  durationMs: number;
  error?: RecordedError;
  /** Until the run is known to be sealed: when the sweeper sends it to a worker, which requests the seal again. */
  sealDueAt?: string;
};
export type Run = ActiveRun | TerminalRun;

/**
 * Where the event of a run comes from. `generic`: a signed webhook of a source that the tenant defines. `api`: a request that
 * names a workflow. `manual`: a request that names an automation. `schedule`: a slot of a schedule.
 */
export const TRIGGER_SOURCES = ['github', 'servicenow', 'generic', 'api', 'manual', 'schedule'] as const;
export type TriggerSource = (typeof TRIGGER_SOURCES)[number];
/** The sources that send webhooks. */
export const WEBHOOK_SOURCES = ['github', 'servicenow', 'generic'] as const satisfies readonly TriggerSource[];

/** Who requested a run that no webhook started, and what the run continues or repeats. */
export interface RunRequest {
  /** A person, a program, or `schedule:NAME`. */
  actor: string;
  /** The run whose trigger this run repeats. */
  rerunOf?: string;
  /**
   * The run whose outputs this run takes for the steps that it does not repeat, and the first step that it repeats. `root`:
   * the first run, if `of` is a replay itself.
   */
  replay?: { of: string; from: string; root?: string };
  /** The plan that this run applies: it makes no other write. */
  planHash?: string;
  /** The time of the schedule that started the run. */
  slot?: string;
  /** Approvals in addition to those of the workflow, and the only profile with which its commands may run. */
  validationMode?: ValidationMode;
  profile?: string;
  /** The run makes this one call, which a session or a program proposed. */
  action?: RequestedAction;
}

/** One call that is proposed from outside a workflow, and governed like the step of one. */
export interface RequestedAction {
  tool: string;
  inputHash: string;
  /** The session that proposed it; absent if a person or program did. */
  of?: { runId: string; step: string };
}

/** One write that a plan showed. */
export interface PlannedWrite {
  step: string;
  tool: string;
  target: string;
  /** The hash of each value; null for a value that only the run knows. */
  fields: Record<string, string | null>;
  /** The values at the target when the plan was made, with the changes of earlier writes of the plan. */
  before?: Record<string, unknown>;
}

/** The plan that a run applies: it may make these writes only, under these policies. */
export interface AppliedPlan {
  planHash: string;
  policyHashes: string[];
  writes: PlannedWrite[];
}

/** The event that started a run, as expressions of the workflow see it. */
export interface Trigger {
  source: TriggerSource;
  event: string;
  /** Fields that workflows use by name (`trigger.sysId`), in addition to the payload. */
  fields: Record<string, unknown>;
  payload: unknown;
  /** Who created or changed the subject of the event, by their names in the source; see `makersOf`. */
  makers?: string[];
  /** A person wrote this event to save a plan; no system sent it. So policies must not trust what it says. */
  simulated?: true;
  /** Stored beside the event because it does not change either. Expressions do not see it. */
  plan?: AppliedPlan;
  /** The call that the run makes instead of the steps of its workflow. Expressions do not see it either. */
  action?: ProposedCallInput;
  receivedAt: string;
}

/** The call of an action. Nothing in its input is an expression. */
export interface ProposedCallInput {
  tool: string;
  input: unknown;
  /** The step of the session that proposed it. */
  sessionStep?: string;
  /** The fields that select the target, and that the session chose. */
  chosen: string[];
  /** What the step of the session says, if that is more than the risk of the tool. */
  risk?: ActionRisk;
  /** The call is the command of a session, which reads this on its standard input, with the token of the session. */
  session?: { stepIndex: number; until: string; prompt: { text: string; data: Record<string, unknown> } };
}

/** The event in triggers that people and programs make. */
export const REQUESTED_EVENT = 'run.requested';

/** What expressions see as `run.id`. A replay uses the id of its original, so that it proposes the same writes. */
export const idInExpressions = ({ runId, request }: Pick<Run, 'runId' | 'request'>): string =>
  request?.replay?.root ?? request?.replay?.of ?? runId;

/** Replaces a trigger whose row is missing. */
export const lostTrigger = ({ trigger: { source, event }, createdAt }: Run): Trigger => ({
  source,
  event,
  fields: {},
  payload: null,
  receivedAt: createdAt,
});

/** When the sweeper sends the run to a worker. */
export const dueAtOf = (run: Run): string | undefined => (isTerminal(run) ? run.sealDueAt : run.dueAt);

export function isTerminal(run: Run): run is TerminalRun {
  return (TERMINAL_STATUSES as readonly string[]).includes(run.status);
}
