import * as z from 'zod';
import type { RecordedError } from './errors.ts';
import type { Compensation } from './events/write-events.ts';

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
export const RunStatus = z.enum([...ACTIVE_STATUSES, ...TERMINAL_STATUSES]);

/** A run not finished this long after it was accepted ends as `timed_out`. */
export const RUN_DEADLINE_MS = 2 * 60 * 60 * 1000;

/** A running run that nothing happened to for this long has been lost by everyone who should move it: it is resumed. */
export const INACTIVITY_MAX_MS = 30 * 60 * 1000;

/** What enrichment found in the trigger: deterministic, local, shown wherever the run is shown. */
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
  /** Pinned when the run is accepted: a later publication does not change a run under way. */
  workflow: { name: string; version: number };
  trigger: { source: TriggerSource; event: string; key: string };
  /** What the run is about, e.g. `github:octo-org/payments#7`. */
  subject?: string;
  enrichment?: Enrichment;
  /** Number and hash of the newest commit: the run row and its chain move together. */
  seq: number;
  headHash: string;
  createdAt: string;
  updatedAt: string;
  startedAt?: string;
  /** Moved on by the time the run spends waiting for people. */
  deadlineAt: string;
  /** Since when people are waited for, while they are. */
  waitingForPeopleSince?: string;
  /** An approval it waits for was not decided in time, and others were called. */
  approvalOverdueSince?: string;
  /** People whose input came into the run while it was under way: whoever sent it a signal or asked to roll it back. */
  makers?: string[];
  /** Writes begun so far, counted against the cap. */
  writes: number;
  /** The slot under the tenant's cap while the run is `running`. */
  slot?: Slot;
  /** The slot under its workflow's own cap, meanwhile. */
  workflowSlot?: Slot;
  /** Held from start to end: no other run with the same key runs meanwhile. */
  concurrencyKey?: string;
  /** Somebody wants it stopped; it stops as soon as nothing of it is in flight. */
  stopRequest?: StopRequest;
  /** Who asked for it to be canceled, or rolled back and then canceled, when and why. */
  cancellation?: Cancellation;
  /** How often the run went on from its last commit after whoever moved it had gone, or after a pause. */
  resumeCount?: number;
  /** How many of these because nothing had happened to it for too long. */
  orphanResumes?: number;
  /** Set when the run began to take back what it wrote. */
  rollback?: Rollback;
  /** What became of each of its writes when the run was rolled back or canceled, in that order. */
  compensation?: Compensation[];
}

interface Cancellation {
  actor: string;
  at: string;
  reason?: string;
}

export interface Rollback {
  /** How the run ends once everything that can be is taken back. */
  endsAs: 'failed_terminal' | 'canceled';
  actor: string;
  at: string;
  /** What went wrong, if that is why. */
  error?: RecordedError;
}

/** Which counter the place was taken from, so that it is given back to the same. */
export interface Slot {
  shard: number;
  workspace: string;
  /** Of a workflow's own counter: its name. */
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
  /** The first step that is not done yet. */
  currentStep?: string;
  /** When someone must look at this run again, whatever else happens; only a paused run is nobody's to look at. */
  dueAt?: string;
};
export type TerminalRun = RunFacts & {
  status: TerminalStatus;
  completedAt: string;
  durationMs: number;
  error?: RecordedError;
};
export type Run = ActiveRun | TerminalRun;

export type TriggerSource = 'github' | 'servicenow';

/** The event that caused a run, as its workflow's expressions see it. */
export interface Trigger {
  source: TriggerSource;
  event: string;
  /** Fields of the source that workflows ask for by name (`trigger.sysId`), beside the whole payload. */
  fields: Record<string, unknown>;
  payload: unknown;
  /** Who created or changed what the event is about, by the names its source has for them; see `makersOf`. */
  makers?: string[];
  receivedAt: string;
}

/** What is left to say of a trigger whose row is gone. */
export const lostTrigger = ({ trigger: { source, event }, createdAt }: Run): Trigger => ({
  source,
  event,
  fields: {},
  payload: null,
  receivedAt: createdAt,
});

export function isTerminal(run: Run): run is TerminalRun {
  return (TERMINAL_STATUSES as readonly string[]).includes(run.status);
}
