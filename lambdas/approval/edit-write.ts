import { findOperation } from '../connectors/registry.ts';
import type { Person } from '../people/people.ts';
import { deciders } from '../people/votes.ts';
import { stricter } from '../policy/approval-requirement.ts';
import { ALWAYS_TWO, alwaysNeedsTwo } from '../policy/gates.ts';
import {
  type ApprovalRequirement,
  groundsOf,
  type Policy,
  type PolicyDecision,
  type ProposedAction,
  whyOf,
} from '../policy/policy.ts';
import { differenceFromPlan } from '../proposal/check-plan.ts';
import {
  type DecidedCall,
  decideOnCall,
  type ProposedCall,
  policyDecided,
  proposeCall,
} from '../proposal/propose-call.ts';
import type { Approval, FieldChange, Vote } from '../run/approval.ts';
import { approvedTogether } from '../run/approval-phase.ts';
import { CountersignError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { WaitingApprovalStep } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { assertFits } from './request-approval.ts';
import { editableFields, fieldsNamed } from './texts/editable-fields.ts';
import { nameAndValue, namesOf, valueNamed } from './texts/known-names.ts';

/** An open approval and the vote of someone who may decide on it. */
export interface DecidableApproval {
  approval: Approval;
  step: WaitingApprovalStep;
  vote: Vote;
  people: readonly Person[];
}

/** Replaces the fields of a write that waits for approval. Policy decides on the edited write at once. */
export async function editWrite(
  { policy }: { policy: Policy },
  { workflow, trigger }: RunState,
  draft: RunDraft,
  decidable: DecidableApproval,
  fields: Record<string, unknown>,
): Promise<Approval> {
  const { approval, step, vote, people } = decidable;
  const { proposed, changes, environment } = editedWrite(decidable, withKnownIds(approval, fields));
  const difference = differenceFromPlan(trigger, step, proposed);
  if (difference !== undefined) {
    const detail = `this run makes only the writes of a plan, and ${difference}; reject the write, change the workflow or its inputs, and apply a new plan`;
    throw new CountersignError('INPUT_INVALID', detail);
  }
  const makers = [...new Set([...approval.makers, vote.person])];
  const { index } = step;
  const asking = { at: draft.at, trigger, before: approval.before, fresh: true };
  const decided = await decideOnCall({ policy, environment }, draft.run, proposed, { workflow, index, makers }, asking);
  const { request, decision, input } = decided;
  if (decision.verdict === 'deny') {
    throw new CountersignError('POLICY_DENIED', `policy denies the edited write: ${whyOf(decision)}`);
  }
  const { approvalId } = approval;
  const changed = changeApproval(draft, decidable, decided, changes);
  assertFits(changed, input);
  const { quorum } = changed.requirement;
  const left = deciders(changed, people, draft.at).length;
  if (left < quorum) {
    const detail = `after this edit, too few people could approve the write: it would need ${quorum}, and without you, its editor, ${left} could; approve or reject it without an edit`;
    throw new CountersignError('INPUT_INVALID', detail);
  }
  draft
    .put({ ...step, input, governed: { request, decision, approvalId }, updatedAt: draft.at })
    .record(policyDecided(step, decided), {
      type: 'approval.edited',
      step: step.id,
      approvalId,
      person: vote.person,
      via: vote.via,
      fields: changes.map(({ field }) => field),
      previousHash: approval.actionHash,
      actionHash: changed.actionHash,
      ...(changed.phase && { leadHash: decided.actionHash }),
      ...changed.requirement,
      makers,
    });
  return changed;
}

function changeApproval(
  draft: RunDraft,
  { approval, vote }: DecidableApproval,
  { action, decision, proposal, actionHash }: DecidedCall,
  changes: FieldChange[],
): Approval {
  const { person, via, at } = vote;
  const phase = approval.phase && { ...approval.phase, leadHash: actionHash };
  return draft.changeApproval(approval, {
    action,
    ...(phase && { phase }),
    actionHash: approvedTogether(actionHash, phase),
    grounds: groundsOf(decision),
    after: proposal.after,
    requirement: requirementAfterEdit(approval, decision, action),
    makers: action.makers,
    votes: [],
    edits: [...approval.edits, { person, via, at, changes, previousHash: approval.actionHash }],
  });
}

/** An edit may require more than before, never less. Operators may approve the retry of a write, not another write. */
function requirementAfterEdit(
  { requirement }: Approval,
  decision: PolicyDecision,
  action: ProposedAction,
): ApprovalRequirement {
  const { operators: _retryOnly, ...asked } = requirement;
  const due = decision.verdict === 'needs_approval' ? stricter(asked, decision.requirement) : asked;
  return alwaysNeedsTwo(action) ? stricter(due, ALWAYS_TWO) : due;
}

/**
 * The fields with ids instead of names. Only the names on the approval can be used: the functions that people call have no
 * credentials of targets, so they cannot look up others.
 */
function withKnownIds({ action, names }: Approval, fields: Record<string, unknown>): Record<string, unknown> {
  const ids = fieldsNamed(action, fields).map((field) => [field, knownId(names, field, fields[field])]);
  return { ...fields, ...Object.fromEntries(ids) };
}

function knownId(names: Approval['names'], field: string, given: unknown): string {
  const id = valueNamed(names, field, String(given));
  if (id !== undefined) return id;
  const known = namesOf(names, field).map(([value, name]) => nameAndValue(name, value));
  const hint = known.length > 0 ? `; this approval knows ${known.join(', ')}` : '';
  throw new CountersignError('INPUT_INVALID', `${field}: give the sys_id instead of this name${hint}`);
}

/** The write with the new fields, if an edit may change them. */
function editedWrite({ approval, step }: DecidableApproval, fields: Record<string, unknown>) {
  const operation = findOperation(step.tool);
  const { action } = approval;
  // An undo restores the earlier values: with other values it would be another write.
  if (!action || !operation || step.undoes !== undefined) {
    throw new CountersignError('INPUT_INVALID', 'this approval has no fields that you can edit; approve or reject it');
  }
  const changes = changesIn(action.fields, fields);
  if (changes.length === 0) {
    throw new CountersignError(
      'INPUT_INVALID',
      'the edit changes no value; change a field, or approve or reject the write',
    );
  }
  // People have not seen the current value of a field that was not proposed.
  const foreign = changes.find(({ field }) => !Object.hasOwn(action.fields, field));
  if (foreign) {
    const written = Object.keys(action.fields).join(', ');
    throw new CountersignError('INPUT_INVALID', `${foreign.field} is not a field of this write; it has: ${written}`);
  }
  const fixed = changes.find(({ field }) => !Object.hasOwn(editableFields(action), field));
  if (fixed) {
    const detail = `an edit may not change ${fixed.field}; reject the write instead`;
    throw new CountersignError('INPUT_INVALID', detail);
  }
  const { instance, environment } = action;
  const input = operation.edited(operation.parse(step.input), fields);
  const proposed: ProposedCall = proposeCall({ operation, input, instance });
  if (proposed.proposal.target !== action.target) {
    throw new CountersignError('INPUT_INVALID', `an edit may not change the target, ${action.target}`);
  }
  return { proposed, changes, environment };
}

/** True if the last edit was the same: the same fields of the same write, by the same person. */
export function isLastEdit(
  approval: Approval,
  fields: Record<string, unknown>,
  { person, actionHash }: { person: string; actionHash: string },
): boolean {
  const { action, edits } = approval;
  const last = edits.at(-1);
  if (!action || last?.person !== person || last.previousHash !== actionHash) return false;
  const before = Object.fromEntries(last.changes.map(({ field, from }) => [field, from]));
  const known = withKnownIds(approval, fields);
  return JSON.stringify(changesIn({ ...action.fields, ...before }, known)) === JSON.stringify(last.changes);
}

function changesIn(before: Record<string, unknown>, fields: Record<string, unknown>): FieldChange[] {
  return Object.entries(fields)
    .filter(([field, to]) => JSON.stringify(before[field]) !== JSON.stringify(to))
    .map(([field, to]) => ({ field, from: before[field] ?? null, to }));
}
