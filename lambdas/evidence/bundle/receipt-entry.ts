import * as z from 'zod';
import { digestOf, Sha256, textDigest } from '../../run/digest.ts';
import type { Receipt, Reversal } from '../../run/receipt.ts';
import { Count, Described, Digest, described, describeFailure, Failure, Time } from './entry-parts.ts';

export const Cost = z.strictObject({
  provider: z.string(),
  model: z.string(),
  inputTokens: Count,
  outputTokens: Count,
  usd: z.number().optional(),
  calls: z.int().positive().optional(),
});

export const EvidenceReceipt = z.strictObject({
  key: z.string(),
  runId: z.string(),
  step: z.string(),
  index: Count,
  tool: z.string(),
  effect: z.string(),
  target: z.string(),
  fields: z.array(z.string()),
  requestHash: Sha256,
  attempt: Count,
  leaseVersion: Count,
  intentAt: Time,
  openSince: Time,
  grounds: z
    .strictObject({ policyHash: z.string(), policies: z.array(z.string()), approvalId: z.string().optional() })
    .optional(),
  outcome: z.enum(['intent', 'succeeded', 'reversed', 'failed', 'unknown']),
  settledAt: Time.optional(),
  recovered: z.literal(true).optional(),
  incomplete: Digest.optional(),
  output: Described.optional(),
  before: Digest.optional(),
  reversal: z
    .union([
      z.strictObject({ tool: z.string(), input: Digest, expects: Digest.optional() }),
      z.strictObject({ irreversible: z.string() }),
    ])
    .optional(),
  response: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  cost: Cost.optional(),
  error: Failure.optional(),
  reversedAt: Time.optional(),
  reversedBy: z.string().optional(),
});
export type EvidenceReceipt = z.infer<typeof EvidenceReceipt>;

export function describeReceipt(receipt: Receipt): EvidenceReceipt {
  const { key, runId, stepId, stepIndex, tool, effect, target, fields, requestHash, attempt, leaseVersion } = receipt;
  const { intentAt, openSince, outcome, grounds } = receipt;
  return {
    key,
    runId,
    step: stepId,
    index: stepIndex,
    tool,
    effect,
    target,
    fields,
    requestHash,
    attempt,
    leaseVersion,
    intentAt,
    openSince,
    grounds: grounds && {
      policyHash: grounds.policyHash,
      policies: grounds.policies,
      approvalId: grounds.approvalId,
    },
    outcome,
    ...settlement(receipt),
  };
}

function settlement(receipt: Receipt): Partial<EvidenceReceipt> {
  switch (receipt.outcome) {
    case 'intent':
      return {};
    case 'failed':
      return { settledAt: receipt.settledAt, error: describeFailure(receipt.error), cost: receipt.cost };
    case 'unknown':
      return { settledAt: receipt.settledAt, error: describeFailure(receipt.error) };
    case 'succeeded':
    case 'reversed':
      return {
        settledAt: receipt.settledAt,
        recovered: receipt.recovered,
        incomplete: receipt.incomplete === undefined ? undefined : textDigest(receipt.incomplete),
        output: described(receipt.output, 'ours'),
        before: receipt.before && digestOf(receipt.before),
        reversal: describeReversal(receipt.reversal),
        response: receipt.response,
        cost: receipt.cost,
        ...(receipt.outcome === 'reversed' && { reversedAt: receipt.reversedAt, reversedBy: receipt.reversedBy }),
      };
  }
}

function describeReversal(reversal: Reversal): EvidenceReceipt['reversal'] {
  if ('irreversible' in reversal) return { irreversible: reversal.irreversible };
  const { tool, input, expects } = reversal;
  return { tool, input: digestOf(input), expects: expects && digestOf(expects) };
}
