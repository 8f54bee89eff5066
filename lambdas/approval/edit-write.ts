import { findOperation } from '../connectors/registry.ts';
import type { Person } from '../people/people.ts';
import { actionHash } from '../policy/action-hash.ts';
import { stricter } from '../policy/approval-requirement.ts';
import { type ApprovalRequirement, groundsOf, type PolicyDecision, whyOf } from '../policy/policy.ts';
import { policyRequest, proposedAction } from '../policy/proposed-action.ts';
import { decided } from '../proposal/step-action.ts';
import type { Approval, FieldChange, Vote } from '../run/approval.ts';
import { approvedTogether } from '../run/approval-phase.ts';
import { CountersignError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { WaitingApprovalStep } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import type { Worker } from '../worker/worker.ts';
import { assertFits } from './request-approval.ts';
import { deciders } from './votes.ts';

/** Someone who may decide has spoken, of what they saw. */
export interface Vetted {
  approval: Approval;
  step: WaitingApprovalStep;
  vote: Vote;
  people: readonly Person[];
}

/** Policy is asked about the edited write at once: what it denies cannot be proposed by editing either. */
export async function editWrite(
  { policy }: Pick<Worker, 'policy'>,
  state: RunState,
  draft: RunDraft,
  vetted: Vetted,
  fields: Record<string, unknown>,
): Promise<Approval> {
  const { approval, step, vote } = vetted;
  const { action, input, after, changes } = editedWrite(state, vetted, fields);
  const request = policyRequest(draft.run, action);
  const decision = await policy.decide(request, { fresh: true });
  if (decision.verdict === 'deny') {
    throw new CountersignError('POLICY_DENIED', `policy denies the edited write: ${whyOf(decision)}`);
  }
  const hash = actionHash(action, input, decision.policyHash, draft.run.workflow);
  const phase = approval.phase && { ...approval.phase, leadHash: hash };
  const together = approvedTogether(hash, phase);
  const { approvalId, actionHash: previousHash } = approval;
  const { person, via, at } = vote;
  const { makers } = action;
  const changed = draft.changeApproval(approval, {
    action,
    ...(phase && { phase }),
    actionHash: together,
    grounds: groundsOf(decision),
    after,
    // It was about what had been proposed.
    message: undefined,
    // An edit may make it stricter; that it would need nobody does not open a gate people were asked to guard.
    requirement: stricterAfterEdit(approval, decision),
    makers,
    votes: [],
    edits: [...approval.edits, { person, via, at, changes, previousHash }],
  });
  assertFits(changed, input);
  if (deciders(changed, vetted.people, draft.at).length < changed.requirement.quorum) {
    throw new CountersignError('INPUT_INVALID', 'too few would be left who may approve it once you have edited it');
  }
  draft
    .put({ ...step, input, governed: { request, decision, approvalId }, updatedAt: draft.at })
    .record(decided(step, action, decision, hash), {
      type: 'approval.edited',
      step: step.id,
      approvalId,
      person,
      via,
      fields: changes.map(({ field }) => field),
      previousHash,
      actionHash: together,
      ...(phase && { leadHash: hash }),
      ...changed.requirement,
      makers,
    });
  return changed;
}

/** Operators may agree to a write being repeated, not to another one. */
function stricterAfterEdit({ requirement }: Approval, decision: PolicyDecision): ApprovalRequirement {
  const { operators: _repeatedNoMore, ...asked } = requirement;
  return decision.verdict === 'needs_approval' ? stricter(asked, decision.requirement) : asked;
}

/** The write as it is with these fields, if an edit may make it that. */
function editedWrite({ workflow }: RunState, { approval, step, vote }: Vetted, fields: Record<string, unknown>) {
  const operation = findOperation(step.tool);
  const { action } = approval;
  // An undo puts back what was there: anything else would be another write.
  if (!action || !operation || step.undoes !== undefined)
    throw new CountersignError('INPUT_INVALID', 'this approval has nothing that could be edited');
  const changes = changesIn(action.fields, fields);
  if (changes.length === 0) throw new CountersignError('INPUT_INVALID', 'nothing was changed');
  // Of a field that nobody proposed people have not seen what is there now.
  const foreign = changes.find(({ field }) => !Object.hasOwn(action.fields, field));
  if (foreign) {
    const written = Object.keys(action.fields).join(', ');
    throw new CountersignError(
      'INPUT_INVALID',
      `${foreign.field} is not one of the fields that are written: ${written}`,
    );
  }
  const fixed = changes.find(({ field }) => operation.fixed?.includes(field));
  if (fixed) {
    throw new CountersignError('INPUT_INVALID', `${fixed.field} picks where the write goes; an edit may not change it`);
  }
  const { instance, environment, derived } = action;
  const input = operation.edited(operation.parse(step.input), fields);
  const proposal = operation.propose(operation.parse(input), instance);
  if (proposal.target !== action.target) {
    throw new CountersignError('INPUT_INVALID', `an edit may not change the target, ${action.target}`);
  }
  const makers = [...new Set([...approval.makers, vote.person])];
  const definition = workflow.steps[step.index];
  const edited = proposedAction({ operation, proposal, instance, definition, workflow, environment, derived, makers });
  return { action: edited, input, after: proposal.after, changes };
}

/** Whether this very edit was the last one made: the same fields, by the same person, of the same write. */
export function isLastEdit(
  { action, edits }: Approval,
  fields: Record<string, unknown>,
  { person, actionHash }: { person: string; actionHash: string },
): boolean {
  const last = edits.at(-1);
  if (!action || last?.person !== person || last.previousHash !== actionHash) return false;
  const before = Object.fromEntries(last.changes.map(({ field, from }) => [field, from]));
  return JSON.stringify(changesIn({ ...action.fields, ...before }, fields)) === JSON.stringify(last.changes);
}

function changesIn(before: Record<string, unknown>, fields: Record<string, unknown>): FieldChange[] {
  return Object.entries(fields)
    .filter(([field, to]) => JSON.stringify(before[field]) !== JSON.stringify(to))
    .map(([field, to]) => ({ field, from: before[field] ?? null, to }));
}
