import type { Names } from '../connectors/connector.ts';
import type { ApprovalRequirement, Grounds, ProposedAction } from '../policy/policy.ts';
import type { ApprovalPhase } from './approval-phase.ts';
import type { ApprovalContext } from './events/run-events.ts';
import type { TouchedState } from './receipt.ts';

export const APPROVAL_SCHEMA_VERSION = 2;

/** An approval that nobody decides ends as `expired`, not as `rejected`. */
export const APPROVAL_EXPIRES_AFTER_MS = 24 * 60 * 60 * 1000;
/**
 * The limit for the text of an approval, each text counted once. Rows are compressed, random text to 83 % of its size, and
 * a row of DynamoDB has at most 400 KB.
 */
export const APPROVAL_MAX_BYTES = 480 * 1024;
/** How long people have before others are alerted. The approval stays open until it expires. */
export const SLA_MS = { prod: 10 * 60 * 1000, staging: 30 * 60 * 1000, dev: 30 * 60 * 1000 };

/** The index of the step that an approval is for, which its id ends with: `run_1.7-2`. */
export const stepIndexIn = (approvalId: unknown): number => Number(String(approvalId).split('-').at(-1));

const OPEN_APPROVAL_STATUSES = ['requested', 'notified'] as const;
export type OpenApprovalStatus = (typeof OPEN_APPROVAL_STATUSES)[number];
export type ClosedApprovalStatus = 'approved' | 'rejected' | 'expired' | 'canceled';
export type ApprovalStatus = OpenApprovalStatus | ClosedApprovalStatus;

/** The lists of closed approvals. */
export type ClosedApprovalList = 'decided' | 'expired' | 'canceled';
export const closedListOf = (status: ClosedApprovalStatus): ClosedApprovalList =>
  status === 'approved' || status === 'rejected' ? 'decided' : status;
/** When it was closed. Approvals of earlier versions may lack it. */
export const closedAt = ({ decidedAt, requestedAt }: Approval): string => decidedAt ?? requestedAt;

export type Channel = 'slack' | 'api' | 'console';

/** As they were when the person voted. */
export interface VoterRights {
  role: string;
  tier: string;
  groups: string[];
}

export interface Vote {
  /** The person's id, independent of the identity they used. */
  person: string;
  via: Channel;
  decision: 'approve' | 'reject';
  /** Required for a rejection. */
  reason?: string;
  /** The person who is away and for whom they decide. */
  onBehalfOf?: string;
  /** The rights by which they decided: their own, or those of the person who is away. Votes of earlier versions lack it. */
  rights?: VoterRights;
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
  /** Votes before the edit were for this hash. */
  previousHash: string;
}

/**
 * Why an approval is required: by policy, by the validation mode, by the rule of two, because a model chose a target, by an
 * `approval` step, by the `approvers` of a step, or for the retry of a write with medium or high blast radius.
 */
export const GATE_REASONS = ['policy', 'mode', 'always_two', 'tainted', 'step', 'approvers', 'retry'] as const;
export type GateReason = (typeof GATE_REASONS)[number];

/** An approval of one step of one run. A Step Functions execution of the same name waits for it. */
export interface Approval {
  schemaVersion: typeof APPROVAL_SCHEMA_VERSION;
  approvalId: string;
  tenant: string;
  runId: string;
  stepIndex: number;
  stepId: string;
  status: ApprovalStatus;
  /** Grows with every change; a change is stored only if the revision has not changed since it was read. */
  revision: number;
  requestedAt: string;
  /** When people are reminded, when others are alerted, and when it expires. */
  remindAt: string;
  slaAt: string;
  expiresAt: string;
  /** The run, for people to recognise it. */
  automation: string;
  workflow: { name: string; version: number };
  title: string;
  subject?: string;
  asks: GateReason;
  /** The write; absent for an `approval` step, which the steps after it wait for. */
  action?: ProposedAction;
  /** The message of the workflow for approvers: `with.message` of an `approval` step, or `message` of a step that writes. */
  message?: string;
  /** The values before and after the write, where they could be read. */
  before?: TouchedState;
  after?: TouchedState;
  /** Names behind the values, for people. */
  names?: Names;
  /** Why the values before the write could not be read. */
  unread?: string;
  /** In mode `per_phase`: the other writes of the phase. The approval covers those shown here. */
  phase?: ApprovalPhase;
  /** The approval is for this hash only: `actionHash` of policy/action-hash.ts. */
  actionHash: string;
  grounds: Grounds;
  requirement: ApprovalRequirement;
  /** People, or identities without a person, who may not approve it. */
  makers: string[];
  /** Names for makers that are only known by an id of their system, for people. */
  makerNames?: Record<string, string>;
  votes: Vote[];
  edits: Edit[];
  /** The Slack channel, `#approvals`. */
  channel: string;
  remindedAt?: string;
  /** When others were alerted, because nobody had decided within the SLA. */
  escalatedAt?: string;
  /** The card, once it is posted. */
  card?: { channel: string; ts: string };
  decidedAt?: string;
}

/** The id of an approval begins with the id of its run. */
export const runIdOf = (approvalId: string): string => approvalId.split('.')[0] ?? '';

export function isOpen<T extends Pick<Approval, 'status'>>(
  approval: T,
): approval is T & { status: OpenApprovalStatus } {
  return (OPEN_APPROVAL_STATUSES as readonly string[]).includes(approval.status);
}

/** The approval that a status change of the run waits for or follows from. */
export function approvalContext(
  { approvalId, action, automation }: Pick<Approval, 'approvalId' | 'action' | 'automation'>,
  decided: Pick<ApprovalContext, 'decision' | 'decidedBy' | 'reasonHash'> = {},
): ApprovalContext {
  return { approvalId, action: action?.tool ?? 'approval', requestedBy: automation, ...decided };
}

/** Where a person decided: `in slack`. */
export const viaText = (via: string) => (via === 'api' ? 'through the API' : `in ${via}`);
