import * as z from 'zod';
import type { ProposedAction } from '../../policy/policy.ts';
import { digestOf, Sha256 } from '../../run/digest.ts';
import { receiptKeyOf, type Step, UNDO_INDEX_OFFSET } from '../../run/step.ts';
import {
  actionFacts,
  Count,
  DerivedPart,
  Described,
  Digest,
  described,
  describeFailure,
  Failure,
  Time,
} from './entry-parts.ts';

/** The write that policy decided on. */
export const EvidenceAction = z.strictObject({
  tool: z.string(),
  instance: z.string(),
  target: z.string(),
  ...actionFacts,
  /** Parts of the target that derive from a model. */
  derived: z.array(DerivedPart).optional(),
  /** The digest of each written value. */
  fields: z.record(z.string(), Digest),
});

/** A workflow has at most 1,000 steps, and the undo of a step has its index + 5,000. */
const StepIndex = Count.max(2 * UNDO_INDEX_OFFSET - 1);

export const EvidenceStep = z.strictObject({
  id: z.string(),
  index: StepIndex,
  tool: z.string(),
  status: z.string(),
  skipped: z.literal(true).optional(),
  attempt: Count,
  leaseVersion: Count,
  updatedAt: Time,
  completedAt: Time.optional(),
  /** The index of the step that this one undoes. */
  undoes: Count.optional(),
  action: EvidenceAction.optional(),
  approvalId: z.string().optional(),
  receiptKey: z.string().optional(),
  /** The agent that ran the command of its last claim. */
  assigned: z
    .strictObject({ agent: z.string(), assignment: z.string(), profile: z.string(), statementHash: Sha256 })
    .optional(),
  input: Described.optional(),
  output: Described.optional(),
  error: Failure.optional(),
});
export type EvidenceStep = z.infer<typeof EvidenceStep>;

/** The output of these steps is the payload of an external system. */
const HAS_FOREIGN_OUTPUT = /^wait\./;

export function describeStep(step: Step): EvidenceStep {
  const { id, index, tool, status, attempt, leaseVersion, updatedAt, undoes, governed, assigned } = step;
  // In canonical order, because a run has many.
  return {
    action: governed && describeAction(governed.request.action),
    approvalId: governed?.approvalId,
    assigned: assigned && {
      agent: assigned.agentId,
      assignment: assigned.assignmentId,
      profile: assigned.profile,
      statementHash: assigned.statementHash,
    },
    attempt,
    completedAt: 'completedAt' in step ? step.completedAt : undefined,
    error: 'error' in step ? describeFailure(step.error) : undefined,
    id,
    index,
    input: 'input' in step && step.input !== undefined ? described(step.input, 'ours') : undefined,
    leaseVersion,
    output: 'output' in step ? described(step.output, HAS_FOREIGN_OUTPUT.test(tool) ? 'foreign' : 'ours') : undefined,
    receiptKey: receiptKeyOf(step),
    skipped: 'skipped' in step ? step.skipped : undefined,
    status,
    tool,
    undoes,
    updatedAt,
  };
}

export function describeAction(action: ProposedAction): z.infer<typeof EvidenceAction> {
  const { tool, instance, target, effect, risk, blastRadius, environment, destructive, reversible, undo } = action;
  const fields = Object.entries(action.fields).map(([name, value]) => [name, digestOf(value)] as const);
  return {
    blastRadius,
    derived: action.derived?.map(({ field, how, from }) => ({ field, from: [...from], how })),
    destructive,
    effect,
    environment,
    fields: Object.fromEntries(fields),
    instance,
    reversible,
    risk,
    target,
    tool,
    undo,
  };
}
