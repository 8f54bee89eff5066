import type { CommandEnvironment } from './agent.ts';
import type { ProfileName } from './agent-terms.ts';

export const ASSIGNMENT_SCHEMA_VERSION = 1;

/**
 * One claim of a step (lease version) is one assignment to one agent, with one signed statement.
 *
 *   offered -> acknowledged -> completed | lost
 *          \-> withdrawn (not acknowledged in time) | refused (by the agent)
 *
 * All changes after `offered` are part of the commit that changes the step, so exactly one of acknowledgement and
 * withdrawal happens.
 */
export const ASSIGNMENT_STATUSES = ['offered', 'acknowledged', 'withdrawn', 'refused', 'completed', 'lost'] as const;
export type AssignmentStatus = (typeof ASSIGNMENT_STATUSES)[number];

/** `agent_worker_assignments` of source 001, 3.4. */
export interface Assignment {
  schemaVersion: typeof ASSIGNMENT_SCHEMA_VERSION;
  assignmentId: string;
  tenant: string;
  runId: string;
  stepIndex: number;
  stepId: string;
  leaseVersion: number;
  agentId: string;
  agentName: string;
  status: AssignmentStatus;
  /** Grows with each write of the row. */
  revision: number;
  /** The key of the receipt. A result must name it. */
  idempotencyKey: string;
  environment: CommandEnvironment;
  profile: ProfileName;
  /** The ids of the credentials that the command may get. A result can name no others. */
  credentials: string[];
  /** The DSSE envelope with the signed `AssignmentStatement`, and the SHA-256 of its payload. */
  envelope: unknown;
  statementHash: string;
  /** The span of the attempt. Beside the envelope: what is signed does not depend on it. */
  traceparent?: string;
  offeredAt: string;
  /** Acknowledged later, it is no longer valid. */
  acknowledgeBy: string;
  acknowledgedAt?: string;
  /** The process that acknowledged it: another process with the same identity may not run the command, too. */
  bootId?: string;
  endedAt?: string;
  /** Why it was withdrawn, refused or lost. */
  reason?: string;
  result?: CommandResult;
  /** A result that came under a lease that had ended. */
  lateResult?: CommandResult & { at: string };
}

/** A credential that a command received: ids only, for the audit log of the vault. */
export interface UsedCredential {
  id: string;
  source: 'vault' | 'secrets_manager';
  auditId: string | null;
  ttlSeconds: number;
  revoked: boolean;
  fetchMs: number;
}

/** What the agent reported when the command ended: `session.result` of source 001, 3.3. */
export interface CommandResult {
  status: 'succeeded' | 'failed' | 'timed_out' | 'canceled' | 'never_started';
  exitCode: number | null;
  signal: string | null;
  durationMs: number;
  profile: ProfileName;
  output: { sha256: string; bytes: number; chunks: number; droppedBytes: number };
  credentialsUsed: UsedCredential[];
  violations: string[];
  reason?: string;
}

export interface AssignmentPlace {
  runId: string;
  stepIndex: number;
  leaseVersion: number;
}

/** The id names the row, so that nothing must be searched. */
export const assignmentIdOf = ({ runId, stepIndex, leaseVersion }: AssignmentPlace): string =>
  `${runId}.${stepIndex}.${leaseVersion}`;

export function placeOf(assignmentId: string): AssignmentPlace | undefined {
  const [, runId, stepIndex, leaseVersion] = /^([^.#]+)\.(\d{1,4})\.(\d{1,6})$/.exec(assignmentId) ?? [];
  if (runId === undefined) return undefined;
  return { runId, stepIndex: Number(stepIndex), leaseVersion: Number(leaseVersion) };
}
