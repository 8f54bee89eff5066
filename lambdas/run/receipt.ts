import type { RecordedError } from './errors.ts';

export const RECEIPT_SCHEMA_VERSION = 1;

/** How an operation behaves when its answer is lost; see ARCHITECTURE, "The write". */
export type Effect = 'read' | 'natural' | 'probe' | 'opaque';

/** How to undo a write: another tool and its input, or the reason there is none. */
export type Reversal = { tool: string; input: unknown } | { irreversible: string };

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
}

/** Before-state where it could be read, the way back, and what the target answered. */
export interface WriteResult {
  output: unknown;
  before?: unknown;
  reversal: Reversal;
  /** The target's own name for what happened: a status, an id, a timestamp. Metadata only. */
  response: Record<string, string | number | boolean>;
  /** True when the write was found at the target after its answer had been lost. */
  recovered?: true;
}

export type IntentReceipt = ReceiptFacts & { outcome: 'intent' };
export type SucceededReceipt = ReceiptFacts & { outcome: 'succeeded'; settledAt: string } & WriteResult;
export type FailedReceipt = ReceiptFacts & { outcome: 'failed'; settledAt: string; error: RecordedError };
export type UnknownReceipt = ReceiptFacts & { outcome: 'unknown'; settledAt: string; error: RecordedError };
export type Receipt = IntentReceipt | SucceededReceipt | FailedReceipt | UnknownReceipt;
