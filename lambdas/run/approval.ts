import type { ApprovalRequirement, Grounds, ProposedAction } from '../policy/policy.ts';
import type { ApprovalPhase } from './approval-phase.ts';
import type { ApprovalContext } from './events/run-events.ts';
import type { TouchedState } from './receipt.ts';

export const APPROVAL_SCHEMA_VERSION = 2;

/** An approval nobody decides ends as `expired`, never as a human "no". */
export const APPROVAL_EXPIRES_AFTER_MS = 24 * 60 * 60 * 1000;
/**
 * How much text an approval may hold, each text counted once. Rows are compressed, text that looks random to 83 % of its
 * size, and a row of DynamoDB holds 400 KB.
 */
export const APPROVAL_MAX_BYTES = 480 * 1024;
/** How long people may take before others are called: two clocks, of which this one ends nothing. */
export const SLA_MS = { prod: 10 * 60 * 1000, staging: 30 * 60 * 1000, dev: 30 * 60 * 1000 };

export const OPEN_APPROVAL_STATUSES = ['requested', 'notified'] as const;
export type OpenApprovalStatus = (typeof OPEN_APPROVAL_STATUSES)[number];
export type ApprovalStatus = OpenApprovalStatus | 'approved' | 'rejected' | 'expired' | 'canceled';

export type Channel = 'slack' | 'api' | 'console';

export interface Vote {
  /** One person, whatever identity they used. */
  person: string;
  via: Channel;
  decision: 'approve' | 'reject';
  /** Required for a rejection. */
  reason?: string;
  /** The person whose place they take while that one is away. */
  onBehalfOf?: string;
  at: string;
}

export interface FieldChange {
  field: string;
  from: unknown;
  to: unknown;
}

export interface Edit {
  person: string;
  via: Channel;
  at: string;
  changes: FieldChange[];
  /** What had been approved so far was for this. */
  previousHash: string;
}

/**
 * Why there is a gate: policy, the validation mode or the rule of two asked, a model picked a target, it is a step, or a
 * write that reaches far would be sent once more.
 */
export type GateReason = 'policy' | 'mode' | 'always_two' | 'tainted' | 'step' | 'retry';

/** A person's permission for one step of one run, held open by a Step Functions execution of the same name. */
export interface Approval {
  schemaVersion: typeof APPROVAL_SCHEMA_VERSION;
  approvalId: string;
  tenant: string;
  runId: string;
  stepIndex: number;
  stepId: string;
  status: ApprovalStatus;
  /** Grows with every change, and every change is conditioned on the one it was made from. */
  revision: number;
  requestedAt: string;
  /** When a reminder is due, when others are called, and when it is over. */
  remindAt: string;
  slaAt: string;
  expiresAt: string;
  /** What people need to know of the run. */
  automation: string;
  workflow: { name: string; version: number };
  title: string;
  subject?: string;
  asks: GateReason;
  /** What will be written; absent for an `approval` step, which guards whatever comes after it. */
  action?: ProposedAction;
  /** What the workflow wants to be read: an `approval` step's `with.message`, or the `message` of a step that writes. */
  message?: string;
  /** What is there now and what will be, where it could be read. */
  before?: TouchedState;
  after?: TouchedState;
  /** The other writes of the phase, where the workflow asks once for each phase: the approval covers those shown here. */
  phase?: ApprovalPhase;
  /** The approval holds for this and nothing else: `actionHash` of policy/action-hash.ts. */
  actionHash: string;
  grounds: Grounds;
  requirement: ApprovalRequirement;
  /** People (or identities nobody is known by) who do not count. */
  makers: string[];
  votes: Vote[];
  edits: Edit[];
  /** Where to tell people, `#approvals`. */
  channel: string;
  remindedAt?: string;
  /** The SLA passed undecided and others were called: an event, not a status. */
  escalatedAt?: string;
  /** The card, once it is posted. */
  card?: { channel: string; ts: string };
  decidedAt?: string;
}

/** An approval's id begins with its run's. */
export const runIdOf = (approvalId: string): string => approvalId.split('.')[0] ?? '';

export function isOpen<T extends Pick<Approval, 'status'>>(
  approval: T,
): approval is T & { status: OpenApprovalStatus } {
  return (OPEN_APPROVAL_STATUSES as readonly string[]).includes(approval.status);
}

/** What a change of the run's status says of the approval it waits for or follows from. */
export function approvalContext(
  { approvalId, action, automation }: Pick<Approval, 'approvalId' | 'action' | 'automation'>,
  decided: Pick<ApprovalContext, 'decision' | 'decidedBy' | 'reasonHash'> = {},
): ApprovalContext {
  return { approvalId, action: action?.tool ?? 'approval', requestedBy: automation, ...decided };
}
