import type { RecordedError } from './errors.ts';

export const RECEIPT_SCHEMA_VERSION = 1;

/** How an operation behaves when its answer is lost; see ARCHITECTURE, "The write". */
export type Effect = 'read' | 'natural' | 'probe' | 'opaque';

/** The state of just what a write touches, by names a person understands: `{assignment_group: "…"}`, `{triage: true}`. */
export type TouchedState = Record<string, unknown>;

/**
 * How to undo a write: another tool, its input, and the state it must find there to undo ours and nobody else's change
 * (in the words of that tool's `before`); or the reason there is no way back.
 */
export type Reversal = { tool: string; input: unknown; expects?: TouchedState } | { irreversible: string };

/** What a call cost with a provider that charges for it. */
export interface Cost {
  provider: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  /** By the price list of the runtime's version; absent for a model that is not on it. */
  usd?: number;
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
  /** Names of the fields written and the hash of their values: what was attempted, without the values. */
  fields: string[];
  requestHash: string;
  attempt: number;
  leaseVersion: number;
  intentAt: string;
  /** When the first attempt whose outcome is still open was intended: a probe looks back that far. */
  openSince: string;
  /** What the write rests on: the decision of this policy set, and the approval where it asked for one. */
  grounds?: { policyHash: string; policies: string[]; approvalId?: string };
}

/** Before-state where it could be read, the way back, and what the target answered. */
export interface WriteResult {
  output: unknown;
  before?: TouchedState;
  reversal: Reversal;
  cost?: Cost;
  /** The target's own name for what happened: a status, an id, a timestamp. Metadata only. */
  response: Record<string, string | number | boolean>;
  /** True when the write was found at the target after its answer had been lost. */
  recovered?: true;
}

export type IntentReceipt = ReceiptFacts & { outcome: 'intent' };
export type SucceededReceipt = ReceiptFacts & { outcome: 'succeeded'; settledAt: string } & WriteResult;
/** Written, and taken back since: the key is free for the same write again. */
export type ReversedReceipt = Omit<SucceededReceipt, 'outcome'> & {
  outcome: 'reversed';
  reversedAt: string;
  /** The key of the write that took it back. */
  reversedBy: string;
};
export type FailedReceipt = ReceiptFacts & { outcome: 'failed'; settledAt: string; error: RecordedError };
export type UnknownReceipt = ReceiptFacts & { outcome: 'unknown'; settledAt: string; error: RecordedError };
export type Receipt = IntentReceipt | SucceededReceipt | ReversedReceipt | FailedReceipt | UnknownReceipt;
