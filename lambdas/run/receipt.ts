import { hashOf } from './canonical-json.ts';
import type { RecordedError } from './errors.ts';

export const RECEIPT_SCHEMA_VERSION = 1;

/** A write without comparable state is reused only this long. Later, the same write is a new one. */
const REUSED_WITHIN_MS = 24 * 60 * 60 * 1000;

/** How an operation behaves when its response is lost; see ARCHITECTURE, "The write". */
export type Effect = 'read' | 'natural' | 'probe' | 'opaque';

/** The values that a write changes, by readable names: `{assignment_group: "…"}`, `{triage: true}`. */
export type TouchedState = Record<string, unknown>;

/**
 * How to undo a write: the tool, its input, and the state that the target must have (fields of the tool's `before`), so
 * that no later change is undone; or the reason why it is irreversible.
 */
export type Reversal = { tool: string; input: unknown; expects?: TouchedState } | { irreversible: string };

/** The price of a call at a provider that charges for it. */
export interface Cost {
  provider: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  /** By the price list of this version; absent for a model that is not in it. */
  usd?: number;
  /** The number of calls, if more than one. */
  calls?: number;
}

interface ReceiptFacts {
  schemaVersion: typeof RECEIPT_SCHEMA_VERSION;
  tenant: string;
  /** The idempotency key of the write: one receipt per tenant and key. */
  key: string;
  runId: string;
  stepId: string;
  stepIndex: number;
  tool: string;
  effect: Effect;
  target: string;
  /** Names of the written fields and the hash of their values. */
  fields: string[];
  requestHash: string;
  attempt: number;
  leaseVersion: number;
  intentAt: string;
  /** The time of the first attempt whose outcome is open. A probe searches from there. */
  openSince: string;
  /** The cost of earlier attempts that failed. */
  spentBefore?: Cost;
  /** For a command that an agent ran: what the agent reported. */
  command?: CommandRecord;
  /** The policy decision that allows the write, and its approval if one was required. */
  grounds?: { policyHash: string; policies: string[]; approvalId?: string };
}

/** Metadata only. The digest of the output proves the stored output; credentials are named by id. */
export interface CommandRecord {
  agentId: string;
  assignmentId: string;
  /** The SHA-256 of the signed statement that the agent acted on. */
  statementHash: string;
  profile: string;
  environment: string;
  status: 'succeeded' | 'failed' | 'timed_out' | 'canceled' | 'never_started';
  exitCode: number | null;
  signal: string | null;
  durationMs: number;
  output: { sha256: string; bytes: number; droppedBytes: number };
  credentialsUsed: { id: string; source: string; auditId: string | null; ttlSeconds: number; revoked: boolean }[];
  violations: string[];
}

/** The state before the write if it could be read, the undo, and the response of the target. */
export interface WriteResult {
  output: unknown;
  before?: TouchedState;
  reversal: Reversal;
  cost?: Cost;
  /** Status, ids and times of the response. Metadata only. */
  response: Record<string, string | number | boolean>;
  command?: CommandRecord;
  /** What the target did not do, and what to do about it. `reversal` undoes the part that it did. */
  incomplete?: string;
  /** True if the response was lost and a probe found the write at the target. */
  recovered?: true;
}

/** `before`: the state when an attempt without an outcome was sent. It is needed for the undo if the write was made. */
export type IntentReceipt = ReceiptFacts & { outcome: 'intent'; before?: TouchedState };
export type SucceededReceipt = ReceiptFacts & {
  outcome: 'succeeded';
  settledAt: string;
  /** Another run that reuses this write, so this run must not undo it. */
  reusedBy?: string;
  /** Its undo has begun. No run may reuse the write until the outcome of the undo is known. */
  undoBegunAt?: string;
} & WriteResult;
/** Written and undone. The key is free. */
type ReversedReceipt = Omit<SucceededReceipt, 'outcome' | 'undoBegunAt'> & {
  outcome: 'reversed';
  reversedAt: string;
  /** The key of the undo write. */
  reversedBy: string;
  /** Nobody knows whether the command was completed, but its rollback was. */
  error?: RecordedError;
};
type FailedReceipt = ReceiptFacts & {
  outcome: 'failed';
  settledAt: string;
  error: RecordedError;
  cost?: Cost;
  /** The attempt sent no request that changes the target. */
  neverSent?: true;
  /** How to undo what a failed command may have changed. */
  reversal?: Reversal;
};
export type UnknownReceipt = ReceiptFacts & {
  outcome: 'unknown';
  settledAt: string;
  error: RecordedError;
  before?: TouchedState;
  /** How to undo what a lost command may have changed. */
  reversal?: Reversal;
};
/** The receipt of a write that may have been made. */
export type OpenReceipt = IntentReceipt | UnknownReceipt;
export type Receipt = IntentReceipt | SucceededReceipt | ReversedReceipt | FailedReceipt | UnknownReceipt;

/** True if all expected values are present. */
export const isAs = (expected: TouchedState, now: TouchedState): boolean =>
  Object.entries(expected).every(([name, value]) => hashOf(now[name] ?? null) === hashOf(value ?? null));

/** True if the target still has the write of another run, or if that cannot be read but the write is recent. */
export function isAsMade(
  { incomplete, settledAt }: SucceededReceipt,
  after: TouchedState | undefined,
  now: TouchedState | undefined,
  at: string,
): boolean {
  if (incomplete !== undefined) return false;
  if (after) return now !== undefined && isAs(after, now);
  return Date.parse(at) - Date.parse(settledAt) <= REUSED_WITHIN_MS;
}

/** The write was certainly not made, or was undone. */
export const keyIsFree = ({ outcome }: Receipt): boolean => outcome === 'failed' || outcome === 'reversed';

/** The cost of a write, including failed attempts. */
export function spentOn(receipt: Receipt): Cost | undefined {
  const cost = 'cost' in receipt ? receipt.cost : undefined;
  return cost ?? receipt.spentBefore;
}

export function together(a: Cost | undefined, b: Cost | undefined): Cost | undefined {
  if (!a || !b) return a ?? b;
  const usd = a.usd === undefined || b.usd === undefined ? undefined : a.usd + b.usd;
  return {
    ...b,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    calls: (a.calls ?? 1) + (b.calls ?? 1),
    ...(usd !== undefined && { usd }),
  };
}
