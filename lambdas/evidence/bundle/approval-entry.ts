import * as z from 'zod';
import type { Approval } from '../../run/approval.ts';
import type { ApprovalPhase } from '../../run/approval-phase.ts';
import { digestOf, textDigest } from '../../run/digest.ts';
import { Count, Digest, Time } from './entry-parts.ts';
import { describeAction, EvidenceAction } from './step-entry.ts';

const Vote = z.strictObject({
  person: z.string(),
  via: z.string(),
  decision: z.string(),
  reason: Digest.optional(),
  onBehalfOf: z.string().optional(),
  /** From format 2 on: the rights by which the person voted. */
  rights: z.strictObject({ role: z.string(), tier: z.string(), groups: z.array(z.string()) }).optional(),
  at: Time,
});
const Edit = z.strictObject({
  person: z.string(),
  via: z.string(),
  at: Time,
  changes: z.array(z.strictObject({ field: z.string(), from: Digest, to: Digest })),
  previousHash: z.string(),
});

/** The other writes of the phase: those that the approval covers, and those that need an approval of their own. */
const Phase = z.strictObject({
  name: z.string(),
  leadHash: z.string(),
  writes: z.array(
    z.strictObject({
      step: z.string(),
      index: Count,
      action: EvidenceAction,
      before: Digest.optional(),
      after: Digest.optional(),
      actionHash: z.string(),
    }),
  ),
  askedLater: z.array(z.strictObject({ step: z.string(), tool: z.string() })),
});

export const EvidenceApproval = z.strictObject({
  approvalId: z.string(),
  step: z.string(),
  index: Count,
  status: z.string(),
  asks: z.string(),
  requestedAt: Time,
  slaAt: Time,
  expiresAt: Time,
  remindedAt: Time.optional(),
  escalatedAt: Time.optional(),
  decidedAt: Time.optional(),
  action: EvidenceAction.optional(),
  message: Digest.optional(),
  before: Digest.optional(),
  after: Digest.optional(),
  phase: Phase.optional(),
  actionHash: z.string(),
  grounds: z.strictObject({
    policyHash: z.string(),
    policies: z.array(z.string()),
    reasons: z.array(z.string()),
  }),
  requirement: z.strictObject({
    tier: z.string(),
    quorum: Count,
    groups: z.array(z.array(z.string())),
    operators: z.literal(true).optional(),
  }),
  makers: z.array(z.string()),
  votes: z.array(Vote),
  edits: z.array(Edit),
});
export type EvidenceApproval = z.infer<typeof EvidenceApproval>;

/** The request, all votes and edits. Reasons and values are present as digests. */
export function describeApproval(approval: Approval): EvidenceApproval {
  const { approvalId, stepId, stepIndex, status, asks, requestedAt, slaAt, expiresAt, remindedAt } = approval;
  const { escalatedAt, decidedAt, action, message, before, after, actionHash, grounds, requirement } = approval;
  return {
    approvalId,
    step: stepId,
    index: stepIndex,
    status,
    asks,
    requestedAt,
    slaAt,
    expiresAt,
    remindedAt,
    escalatedAt,
    decidedAt,
    action: action && describeAction(action),
    message: message === undefined ? undefined : textDigest(message),
    before: before && digestOf(before),
    after: after && digestOf(after),
    phase: approval.phase && describePhase(approval.phase),
    actionHash,
    grounds: { policyHash: grounds.policyHash, policies: grounds.policies, reasons: grounds.reasons },
    requirement: {
      tier: requirement.tier,
      quorum: requirement.quorum,
      groups: requirement.groups,
      operators: requirement.operators,
    },
    makers: approval.makers,
    votes: approval.votes.map(({ person, via, decision, reason, onBehalfOf, rights, at }) => ({
      person,
      via,
      decision,
      reason: reason === undefined ? undefined : textDigest(reason),
      onBehalfOf,
      rights: rights && { role: rights.role, tier: rights.tier, groups: rights.groups },
      at,
    })),
    edits: approval.edits.map(({ person, via, at, changes, previousHash }) => ({
      person,
      via,
      at,
      changes: changes.map(({ field, from, to }) => ({ field, from: digestOf(from), to: digestOf(to) })),
      previousHash,
    })),
  };
}

function describePhase({ name, leadHash, writes, askedLater }: ApprovalPhase): z.infer<typeof Phase> {
  return {
    name,
    leadHash,
    writes: writes.map(({ stepId, stepIndex, action, before, after, actionHash }) => ({
      step: stepId,
      index: stepIndex,
      action: describeAction(action),
      before: before && digestOf(before),
      after: after && digestOf(after),
      actionHash,
    })),
    askedLater: askedLater.map(({ stepId, tool }) => ({ step: stepId, tool })),
  };
}
