import * as z from 'zod';
import { digestOf, Sha256, textDigest } from '../../run/digest.ts';
import type { CommandRecord, Receipt, Reversal } from '../../run/receipt.ts';
import { Count, Described, Digest, described, describeFailure, Failure, Time } from './entry-parts.ts';

export const Cost = z.strictObject({
  provider: z.string(),
  model: z.string(),
  inputTokens: Count,
  outputTokens: Count,
  usd: z.number().optional(),
  calls: z.int().positive().optional(),
});

/** What the agent reported about a command. Output and credentials are digests and ids. */
const EvidenceCommand = z.strictObject({
  agentId: z.string(),
  assignmentId: z.string(),
  statementHash: Sha256,
  profile: z.string(),
  environment: z.string(),
  status: z.string(),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  durationMs: Count,
  output: z.strictObject({ sha256: Sha256, bytes: Count, droppedBytes: Count }),
  credentialsUsed: z.array(
    z.strictObject({
      id: z.string(),
      source: z.string(),
      /** The request id in the audit log of the vault. */
      auditId: z.string().nullable(),
      ttlSeconds: Count,
      revoked: z.boolean(),
    }),
  ),
  violations: z.array(z.string()),
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
  command: EvidenceCommand.optional(),
  cost: Cost.optional(),
  error: Failure.optional(),
  reversedAt: Time.optional(),
  reversedBy: z.string().optional(),
});
export type EvidenceReceipt = z.infer<typeof EvidenceReceipt>;

export function describeReceipt(receipt: Receipt): EvidenceReceipt {
  const { key, runId, stepId, stepIndex, tool, effect, target, fields, requestHash, attempt, leaseVersion } = receipt;
  const { intentAt, openSince, outcome, grounds, command } = receipt;
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
    command: command && describeCommand(command),
    ...settlement(receipt),
  };
}

function settlement(receipt: Receipt): Partial<EvidenceReceipt> {
  switch (receipt.outcome) {
    case 'intent':
      return {};
    case 'failed':
      return {
        settledAt: receipt.settledAt,
        error: describeFailure(receipt.error),
        cost: receipt.cost,
        reversal: receipt.reversal && describeReversal(receipt.reversal),
      };
    case 'unknown':
      return {
        settledAt: receipt.settledAt,
        error: describeFailure(receipt.error),
        reversal: receipt.reversal && describeReversal(receipt.reversal),
      };
    case 'succeeded':
    case 'reversed':
      return {
        settledAt: receipt.settledAt,
        recovered: receipt.recovered,
        incomplete: receipt.incomplete === undefined ? undefined : textDigest(receipt.incomplete),
        // The output of a lost command that was rolled back is not known.
        output: receipt.output === undefined ? undefined : described(receipt.output, 'ours'),
        before: receipt.before && digestOf(receipt.before),
        reversal: describeReversal(receipt.reversal),
        response: receipt.response,
        cost: receipt.cost,
        ...(receipt.outcome === 'reversed' && {
          reversedAt: receipt.reversedAt,
          reversedBy: receipt.reversedBy,
          error: receipt.error && describeFailure(receipt.error),
        }),
      };
  }
}

function describeCommand(command: CommandRecord): EvidenceReceipt['command'] {
  const { agentId, assignmentId, statementHash, profile, environment, status, exitCode, signal, durationMs } = command;
  const { output, credentialsUsed, violations } = command;
  return {
    ...{ agentId, assignmentId, statementHash, profile, environment, status, exitCode, signal, durationMs },
    output: { sha256: output.sha256, bytes: output.bytes, droppedBytes: output.droppedBytes },
    credentialsUsed: credentialsUsed.map(({ id, source, auditId, ttlSeconds, revoked }) => ({
      ...{ id, source, auditId, ttlSeconds, revoked },
    })),
    violations,
  };
}

function describeReversal(reversal: Reversal): EvidenceReceipt['reversal'] {
  if ('irreversible' in reversal) return { irreversible: reversal.irreversible };
  const { tool, input, expects } = reversal;
  return { expects: expects && digestOf(expects), input: digestOf(input), tool };
}
