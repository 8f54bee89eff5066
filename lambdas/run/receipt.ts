import { hashOf } from './canonical-json.ts';
import type { RecordedError } from './errors.ts';

export const RECEIPT_SCHEMA_VERSION = 1;

/** For how long a write that leaves nothing to compare with counts as the same one: an event told twice, not a new one. */
const RESTS_ON_WITHIN_MS = 24 * 60 * 60 * 1000;

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
  /** How many calls it took, if more than one. */
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
  /** Names of the fields written and the hash of their values: what was attempted, without the values. */
  fields: string[];
  requestHash: string;
  attempt: number;
  leaseVersion: number;
  intentAt: string;
  /** When the first attempt whose outcome is still open was intended: a probe looks back that far. */
  openSince: string;
  /** What earlier attempts cost that came to nothing. */
  spentBefore?: Cost;
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
  /** What the target left undone, and what to do about it. The rest was done: `reversal` takes back just that. */
  incomplete?: string;
  /** True when the write was found at the target after its answer had been lost. */
  recovered?: true;
}

/** `before`: what was there when an attempt with no outcome was sent: the way back, should the write be found made. */
export type IntentReceipt = ReceiptFacts & { outcome: 'intent'; before?: TouchedState };
export type SucceededReceipt = ReceiptFacts & {
  outcome: 'succeeded';
  settledAt: string;
  /** Another run that asked for the identical write and was given this receipt: it is not only ours to undo any more. */
  reusedBy?: string;
  /** Its undo has begun: nobody may rest on it until it is known what became of that. */
  undoBegunAt?: string;
} & WriteResult;
/** Written, and taken back since: the key is free for the same write again. */
type ReversedReceipt = Omit<SucceededReceipt, 'outcome' | 'undoBegunAt'> & {
  outcome: 'reversed';
  reversedAt: string;
  /** The key of the write that took it back. */
  reversedBy: string;
};
type FailedReceipt = ReceiptFacts & {
  outcome: 'failed';
  settledAt: string;
  error: RecordedError;
  cost?: Cost;
  /** No request of the attempt that would change something has left the worker. */
  neverSent?: true;
};
type UnknownReceipt = ReceiptFacts & {
  outcome: 'unknown';
  settledAt: string;
  error: RecordedError;
  before?: TouchedState;
};
/** Of a write that may have been made. */
export type OpenReceipt = IntentReceipt | UnknownReceipt;
export type Receipt = IntentReceipt | SucceededReceipt | ReversedReceipt | FailedReceipt | UnknownReceipt;

/** Whether things are as expected, as far as anything was. */
export const isAs = (expected: TouchedState, now: TouchedState): boolean =>
  Object.entries(expected).every(([name, value]) => hashOf(now[name] ?? null) === hashOf(value ?? null));

/** Of a write that another run has made: whether the target still shows it, or, where it would not, it is recent. */
export function isAsMade(
  { incomplete, settledAt }: SucceededReceipt,
  after: TouchedState | undefined,
  now: TouchedState | undefined,
  at: string,
): boolean {
  if (incomplete !== undefined) return false;
  if (after) return now !== undefined && isAs(after, now);
  return Date.parse(at) - Date.parse(settledAt) <= RESTS_ON_WITHIN_MS;
}

/** The write certainly did not happen, or was taken back since: anybody may make it. */
export const keyIsFree = ({ outcome }: Receipt): boolean => outcome === 'failed' || outcome === 'reversed';

/** What a write has cost so far, the attempts that came to nothing included. */
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
