import { findOperation } from '../connectors/registry.ts';
import { actionHash } from '../policy/action-hash.ts';
import { groundsOf, whyOf } from '../policy/policy.ts';
import { policyRequest, proposedAction } from '../policy/proposed-action.ts';
import { stricter } from '../policy/requirement.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { factsOf, type WaitingApprovalStep } from '../run/step.ts';
import { concludeRun } from '../worker/conclude-run.ts';
import { moveRun } from '../worker/move-run.ts';
import { fail, succeed } from '../worker/step-endings.ts';
import type { FollowUp, Mover, RunState, Worker } from '../worker/worker.ts';
import { type Approval, type Channel, type FieldChange, isOpen, runIdOf, type Vote } from './approval.ts';
import { changeApproval, closeApproval } from './close-approval.ts';
import { mayDecide } from './eligibility.ts';
import { personBehind } from './people.ts';

export type Decision =
  | { kind: 'approve' }
  | { kind: 'reject'; reason: string }
  /** The write with these fields instead: asked anew, of everyone but the editor. */
  | { kind: 'edit'; fields: Record<string, unknown> };

export interface Deciding {
  tenant: string;
  approvalId: string;
  decision: Decision;
  person: string;
  via: Channel;
  /** What the decider saw. If it is something else by now, they decided on something else. */
  actionHash?: string;
}

export interface Decided {
  approval: Approval;
  /** `counted`: a yes, and more are needed. `already`: this person had decided so before. */
  outcome: 'approved' | 'rejected' | 'counted' | 'edited' | 'already';
}

export type Decider = Mover & Pick<Worker, 'policy' | 'definitions'>;

/** One person's word on one approval, in one commit with what follows from it. The first conditional write wins. */
export async function decide(decider: Decider, deciding: Deciding): Promise<Decided> {
  const { tenant, approvalId } = deciding;
  const target = { tenant, runId: runIdOf(approvalId) };
  // A run that has ended since takes no more commits, but its approvals still say what was decided.
  let decided: Decided | undefined = saidBefore(await read(decider, target, approvalId), deciding);
  if (decided) return decided;
  await moveRun(decider, target, async (state, draft, parked) => {
    const approval = await read(decider, target, approvalId);
    const step = state.steps.get(approval.stepIndex);
    decided = saidBefore(approval, deciding);
    if (decided) return undefined;
    assertInTime(approval, draft.at);
    if (deciding.actionHash !== undefined && deciding.actionHash !== approval.actionHash) {
      throw new CountersignError('APPROVAL_STALE', 'what is to be approved has changed since; look at it again');
    }
    const vote = await voteOf(decider, approval, deciding, draft.at);
    if (step?.status !== 'waiting_approval') throw closed(approval);
    decided = await carryOut(decider, state, draft, { approval, step, vote, decision: deciding.decision });
    return followUp(decider, state, draft, parked);
  }).catch(async (error: unknown) => {
    // Somebody else's decision has ended the run meanwhile: the approval says which.
    if (!(error instanceof CountersignError) || error.code !== 'RUN_TERMINAL_STATE') throw error;
    decided = saidBefore(await read(decider, target, approvalId), deciding);
  });
  if (!decided) throw new CountersignError('NOT_FOUND', `there is no approval ${approvalId}`);
  return decided;
}

const followUp = async ({ runs }: Decider, state: RunState, draft: RunDraft, parked: boolean): Promise<FollowUp> => ({
  holds: [],
  ...(await concludeRun(runs, state, draft, { parked })),
});

interface Word {
  approval: Approval;
  step: WaitingApprovalStep;
  vote: Vote;
  decision: Decision;
}

async function carryOut(decider: Decider, state: RunState, draft: RunDraft, word: Word): Promise<Decided> {
  switch (word.decision.kind) {
    case 'approve':
      return approve(draft, word);
    case 'reject':
      return reject(draft, word, word.decision.reason);
    case 'edit':
      return edit(decider, state, draft, word, word.decision.fields);
  }
}

function approve(draft: RunDraft, { approval, step, vote }: Word): Decided {
  const { approvalId } = approval;
  const votes = [...approval.votes, vote];
  draft.record(voted(approval, vote));
  const people = [...new Set(votes.map(({ person }) => person))];
  // Someone who is away and whoever takes their place have one vote between them.
  const places = new Set(votes.map(({ person, onBehalfOf }) => onBehalfOf ?? person));
  if (Math.min(people.length, places.size) < approval.requirement.quorum) {
    return { approval: changeApproval(draft, approval, { votes }), outcome: 'counted' };
  }
  const approved = closeApproval(draft, approval, { status: 'approved', votes });
  draft.record({ type: 'approval.decided', step: step.id, approvalId, status: 'approved', people });
  if (approval.action) draft.put({ ...factsOf(step, draft.at), status: 'ready', input: step.input });
  else succeed(draft, step, { output: { approvedBy: people } });
  return { approval: approved, outcome: 'approved' };
}

function reject(draft: RunDraft, { approval, step, vote }: Word, reason: string): Decided {
  const { approvalId } = approval;
  const votes = [...approval.votes, { ...vote, reason }];
  const rejected = closeApproval(draft, approval, { status: 'rejected', votes });
  draft.record(
    { ...voted(approval, vote), reasonHash: sha256Hex(reason) },
    { type: 'approval.decided', step: step.id, approvalId, status: 'rejected', people: [vote.person] },
  );
  fail(draft, step, recordedError('APPROVAL_REJECTED', `${vote.person} rejected ${step.id}`), step);
  return { approval: rejected, outcome: 'rejected' };
}

/** Policy is asked about the edited write at once: what it denies cannot be proposed by editing either. */
async function edit(
  decider: Decider,
  state: RunState,
  draft: RunDraft,
  { approval, step, vote }: Word,
  fields: Record<string, unknown>,
): Promise<Decided> {
  const operation = findOperation(step.tool);
  const { action } = approval;
  // An undo puts back what was there: anything else would be another write.
  if (!action || !operation || step.undoes !== undefined)
    throw new CountersignError('INPUT_INVALID', 'this approval has nothing that could be edited');
  const changes = changesIn(action.fields, fields);
  if (changes.length === 0) throw new CountersignError('INPUT_INVALID', 'nothing was changed');
  const { instance, environment } = action;
  const input = operation.edited(operation.parse(step.input), fields);
  const proposal = operation.propose(operation.parse(input), instance);
  if (proposal.target !== action.target) {
    throw new CountersignError('INPUT_INVALID', `an edit may not change the target, ${action.target}`);
  }
  // What is not among the fields people see cannot be edited where people would not see it.
  const hidden = changes.find(({ field }) => !Object.hasOwn(proposal.fields, field));
  if (hidden) throw new CountersignError('INPUT_INVALID', `${hidden.field} is not one of the fields that are written`);
  const makers = [...new Set([...approval.makers, vote.person])];
  const definition = state.workflow.steps[step.index];
  const { workflow } = state;
  const edited = proposedAction({ operation, proposal, instance, definition, workflow, environment, makers });
  const request = policyRequest(draft.run, edited);
  const decision = await decider.policy.decide(request, { fresh: true });
  if (decision.verdict === 'deny') {
    throw new CountersignError('POLICY_DENIED', `policy denies the edited write: ${whyOf(decision)}`);
  }
  const hash = actionHash(edited, input, decision.policyHash, draft.run.workflow);
  const { person, via, at } = vote;
  const changed = changeApproval(draft, approval, {
    action: edited,
    actionHash: hash,
    grounds: groundsOf(decision),
    after: proposal.after,
    // An edit may make it stricter; that it would need nobody does not open a gate people were asked to guard.
    requirement:
      decision.verdict === 'needs_approval'
        ? stricter(approval.requirement, decision.requirement)
        : approval.requirement,
    makers,
    votes: [],
    edits: [...approval.edits, { person, via, at, changes, previousHash: approval.actionHash }],
  });
  const { approvalId } = approval;
  draft.put({ ...step, input, governed: { request, decision, approvalId }, updatedAt: draft.at }).record({
    type: 'approval.edited',
    step: step.id,
    approvalId,
    person,
    via,
    fields: changes.map(({ field }) => field),
    previousHash: approval.actionHash,
    actionHash: hash,
  });
  return { approval: changed, outcome: 'edited' };
}

function changesIn(before: Record<string, unknown>, fields: Record<string, unknown>): FieldChange[] {
  return Object.entries(fields)
    .filter(([field, to]) => JSON.stringify(before[field]) !== JSON.stringify(to))
    .map(([field, to]) => ({ field, from: before[field] ?? null, to }));
}

async function read(
  { runs }: Pick<Decider, 'runs'>,
  { tenant, runId }: { tenant: string; runId: string },
  approvalId: string,
): Promise<Approval> {
  const approval = await runs.approval(tenant, runId, approvalId);
  if (!approval) throw new CountersignError('NOT_FOUND', `there is no approval ${approvalId}`);
  return approval;
}

/** Slack repeats itself and people click twice: saying the same again changes nothing; saying more is too late. */
function saidBefore(approval: Approval, { decision, person }: Deciding): Decided | undefined {
  const same = approval.votes.some((vote) => vote.person === person && vote.decision === decision.kind);
  if (same) return { approval, outcome: 'already' };
  if (!isOpen(approval)) throw closed(approval);
  return undefined;
}

async function voteOf(decider: Decider, approval: Approval, deciding: Deciding, at: string): Promise<Vote> {
  const { person: id, via, decision, tenant } = deciding;
  const people = await decider.definitions.people(tenant);
  const person = people.find((each) => each.id === id);
  if (!person) throw new CountersignError('APPROVAL_FORBIDDEN', `${id} is not known here; ask an admin to add you`);
  // An identity may have been claimed only after the gate was opened.
  const makers = approval.makers.map((maker) => personBehind(people, maker));
  if (makers.includes(id)) {
    throw new CountersignError('APPROVAL_SELF', 'you had a hand in this write, so someone else must decide on it');
  }
  const eligible = mayDecide(person, people, approval.requirement, makers, at);
  if (!eligible.may) throw new CountersignError('APPROVAL_FORBIDDEN', eligible.why);
  const said = decision.kind === 'reject' ? ('reject' as const) : ('approve' as const);
  return { person: id, via, decision: said, at, ...(eligible.onBehalfOf && { onBehalfOf: eligible.onBehalfOf }) };
}

function voted({ approvalId, stepId }: Approval, { person, via, decision, onBehalfOf }: Vote) {
  return {
    type: 'approval.voted' as const,
    step: stepId,
    approvalId,
    person,
    via,
    decision,
    ...(onBehalfOf !== undefined && { onBehalfOf }),
  };
}

/** Time is up when the clock says so, not when somebody has come round to writing it down. */
function assertInTime({ expiresAt }: Approval, at: string): void {
  if (expiresAt > at) return;
  throw new CountersignError('APPROVAL_CLOSED', `this expired at ${expiresAt}; nothing was written`);
}

function closed({ status, votes, decidedAt }: Approval): CountersignError {
  const who = [...new Set(votes.map(({ person }) => person))].join(' and ');
  return new CountersignError(
    'APPROVAL_CLOSED',
    `this was ${status}${who ? ` by ${who}` : ''} at ${decidedAt}; your decision was not needed any more`,
  );
}
