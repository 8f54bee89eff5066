import { mayDecide } from '../people/eligibility.ts';
import { effectiveRole, may, type Person, type Role } from '../people/people.ts';
import { type Approval, type ApprovalStatus, approvalContext, isOpen, runIdOf, type Vote } from '../run/approval.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { By, RunDraft } from '../run/run-draft.ts';
import { factsOf, type WaitingApprovalStep } from '../run/step.ts';
import { changeRun } from '../run-changes/change-run.ts';
import { concludeRun } from '../run-changes/conclude-run.ts';
import type { RunChanger, RunState } from '../run-changes/run-changer.ts';
import { fail, succeed } from '../run-changes/step-endings.ts';
import type { FollowUp, Worker } from '../worker/worker.ts';
import { editWrite, isLastEdit, type Vetted } from './edit-write.ts';
import { countedVotes, makersNow } from './votes.ts';

export type Decision =
  | { kind: 'approve' }
  | { kind: 'reject'; reason: string }
  /** The write with these fields instead: asked anew, of everyone but the editor. */
  | { kind: 'edit'; fields: Record<string, unknown> };

/** A key may be for less than its person may do; elsewhere people come as themselves. */
type CameBy = { via: 'api'; role: Role } | { via: 'slack' | 'console' };

export type Deciding = CameBy & {
  tenant: string;
  approvalId: string;
  decision: Decision;
  person: string;
  /** What the decider saw. If it is something else by now, they decided on something else. */
  actionHash: string;
};

export type Outcome =
  /** A yes, and so many more are needed. */
  | { outcome: 'counted'; missing: number }
  /** `already`: this person had decided so before. */
  | { outcome: 'approved' | 'rejected' | 'edited' | 'already' };

export type Decided = Outcome & { approval: Approval };

export type Decider = RunChanger & Pick<Worker, 'policy' | 'definitions'>;

/** One person's word on one approval, in one commit with what follows from it. The first conditional write wins. */
export async function decide(decider: Decider, deciding: Deciding): Promise<Decided> {
  const { tenant, approvalId } = deciding;
  const target = { tenant, runId: runIdOf(approvalId) };
  // A run that has ended since takes no more commits, but its approvals still say what was decided.
  let decided: Decided | undefined = saidBefore(await read(decider, target, approvalId), deciding);
  if (decided) return decided;
  await changeRun(decider, target, async (state, draft, parked) => {
    const approval = await read(decider, target, approvalId);
    const step = state.steps.get(approval.stepIndex);
    decided = saidBefore(approval, deciding);
    if (decided) return undefined;
    assertInTime(approval, draft.at);
    if (deciding.actionHash !== approval.actionHash) {
      throw new CountersignError('APPROVAL_STALE', 'what is to be approved has changed since; look at it again');
    }
    const people = await decider.definitions.people(tenant, { fresh: true });
    const vote = voteOf(people, approval, deciding, draft.at);
    if (step?.status !== 'waiting_approval') throw closed(approval);
    decided = await carryOut(decider, state, draft, { approval, step, vote, people, decision: deciding.decision });
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

interface Word extends Vetted {
  decision: Decision;
}

async function carryOut(decider: Decider, state: RunState, draft: RunDraft, word: Word): Promise<Decided> {
  switch (word.decision.kind) {
    case 'approve':
      return approve(draft, word);
    case 'reject':
      return reject(draft, word, word.decision.reason);
    case 'edit':
      return { approval: await editWrite(decider, state, draft, word, word.decision.fields), outcome: 'edited' };
  }
}

function approve(draft: RunDraft, { approval, step, vote, people }: Word): Decided {
  const { approvalId, requirement } = approval;
  const votes = [...approval.votes, vote];
  draft.record(voted(approval, vote));
  const approvedBy = countedVotes({ ...approval, votes }, people).map(({ person }) => person);
  const missing = requirement.quorum - approvedBy.length;
  if (missing > 0) return { approval: draft.changeApproval(approval, { votes }), outcome: 'counted', missing };
  const approved = draft.closeApproval(approval, { status: 'approved', votes });
  draft.record({ type: 'approval.decided', step: step.id, approvalId, status: 'approved', people: approvedBy });
  const by = decidedBy(approval, vote, { decision: 'approved', decidedBy: approvedBy });
  draft.causedBy(by);
  for (const waiting of approval.action ? stepsWaitingFor(draft, approvalId) : []) {
    draft.put({ ...factsOf(waiting, draft.at), status: 'ready', input: waiting.input, by });
  }
  if (!approval.action) succeed(draft, step, { output: { approvedBy } });
  return { approval: approved, outcome: 'approved' };
}

function reject(draft: RunDraft, { approval, step, vote }: Word, reason: string): Decided {
  const { approvalId } = approval;
  const votes = [...approval.votes, { ...vote, reason }];
  const rejected = draft.closeApproval(approval, { status: 'rejected', votes });
  const reasonHash = sha256Hex(reason);
  draft.record(
    { ...voted(approval, vote), reasonHash },
    { type: 'approval.decided', step: step.id, approvalId, status: 'rejected', people: [vote.person] },
  );
  const by = decidedBy(approval, vote, { decision: 'rejected', decidedBy: [vote.person], reasonHash });
  for (const waiting of stepsWaitingFor(draft, approvalId)) {
    const error = recordedError('APPROVAL_REJECTED', `${vote.person} rejected ${waiting.id}`);
    fail(draft, waiting, error, { input: waiting.input, by });
  }
  return { approval: rejected, outcome: 'rejected' };
}

/** The step that stopped for it, and others of its phase that have come to wait for it too. */
const stepsWaitingFor = ({ steps }: RunDraft, approvalId: string): WaitingApprovalStep[] =>
  [...steps.values()]
    .filter((step) => step.status === 'waiting_approval')
    .filter((step) => step.approvalId === approvalId);

const decidedBy = (approval: Approval, { person }: Vote, decided: Parameters<typeof approvalContext>[1]): By => ({
  initiator: 'approval',
  actor: person,
  approval: approvalContext(approval, decided),
});

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
function saidBefore(approval: Approval, deciding: Deciding): Decided | undefined {
  const { decision, person } = deciding;
  const same =
    decision.kind === 'edit'
      ? isLastEdit(approval, decision.fields, deciding)
      : approval.votes.some((vote) => vote.person === person && vote.decision === decision.kind);
  if (same) return { approval, outcome: 'already' };
  if (!isOpen(approval)) throw closed(approval);
  return undefined;
}

function voteOf(people: readonly Person[], approval: Approval, deciding: Deciding, at: string): Vote {
  const { person: id, via, decision } = deciding;
  const person = people.find((each) => each.id === id);
  if (!person) throw new CountersignError('APPROVAL_FORBIDDEN', `${id} is not known here; ask an admin to add you`);
  const makers = makersNow(approval, people);
  if (makers.includes(id)) {
    throw new CountersignError('APPROVAL_SELF', 'you had a hand in this write, so someone else must decide on it');
  }
  const eligible = mayDecide(comingAs(person, deciding, approval), people, approval.requirement, makers, at);
  if (!eligible.may) throw new CountersignError('APPROVAL_FORBIDDEN', eligible.why);
  const said = decision.kind === 'reject' ? ('reject' as const) : ('approve' as const);
  return { person: id, via, decision: said, at, ...(eligible.onBehalfOf && { onBehalfOf: eligible.onBehalfOf }) };
}

/** Someone with no more rights than the key they came with; a key for something else decides nothing, in anyone's place. */
function comingAs(person: Person, deciding: Deciding, { requirement }: Approval): Person {
  if (deciding.via !== 'api') return person;
  const { role } = deciding;
  const forThis = may(role, 'decide') || (requirement.operators && may(role, 'control'));
  if (role !== person.role && !forThis) {
    throw new CountersignError(
      'APPROVAL_FORBIDDEN',
      `a key for the role ${role} may not decide; use one for your own, ${person.role}`,
    );
  }
  return { ...person, role: effectiveRole(role, person) };
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

/** What people must have said for it to end so; time and the run itself end it the other ways. */
const SAID_FOR: Partial<Record<ApprovalStatus, Vote['decision']>> = { approved: 'approve', rejected: 'reject' };

function closed({ status, votes, decidedAt }: Approval): CountersignError {
  const deciders = votes.filter(({ decision }) => decision === SAID_FOR[status]);
  const who = deciders.map(({ person }) => person).join(' and ');
  return new CountersignError(
    'APPROVAL_CLOSED',
    `this was ${status}${who ? ` by ${who}` : ''} at ${decidedAt}; your decision was not needed any more`,
  );
}
