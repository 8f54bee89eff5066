import { countedVotes } from '../people/votes.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Policy } from '../policy/policy.ts';
import { type Approval, approvalContext, isOpen, runIdOf, type Vote } from '../run/approval.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import type { By, RunDraft } from '../run/run-draft.ts';
import { factsOf, type WaitingApprovalStep } from '../run/step.ts';
import { changeRun } from '../run-changes/change-run.ts';
import { concludeRun } from '../run-changes/conclusion/conclude-run.ts';
import type { RunChanger, RunState } from '../run-changes/run-changer.ts';
import { fail, succeed } from '../run-changes/step-endings.ts';
import { assertInTime, closed, type Deciding, voteOf } from './check-decision.ts';
import { type DecidableApproval, editWrite, isLastEdit } from './edit-write.ts';
import { isRecordedRefusal, recordRefusal } from './record-refusal.ts';

export type { Deciding, Decision } from './check-decision.ts';

export type Outcome =
  /** The vote counts, and `missing` more are needed. */
  | { outcome: 'counted'; missing: number }
  /** `already`: this person had made the same decision before. */
  | { outcome: 'approved' | 'rejected' | 'edited' | 'already' };

export type Decided = Outcome & { approval: Approval };

export type Decider = RunChanger & { policy: Policy; definitions: Pick<Definitions, 'people'> };

/** Records the decision of one person, in one commit with everything that follows from it. The first commit wins. */
export async function decide(decider: Decider, deciding: Deciding): Promise<Decided> {
  const { tenant, approvalId } = deciding;
  const target = { tenant, runId: runIdOf(approvalId) };
  // A run that has ended takes no more commits, but its approvals still show what was decided.
  let decided: Decided | undefined = decidedBefore(await read(decider, target, approvalId), deciding);
  if (decided) return decided;
  await changeRun(decider, target, async (state, draft, noFreeSlot) => {
    const approval = await read(decider, target, approvalId);
    const step = state.steps.get(approval.stepIndex);
    decided = decidedBefore(approval, deciding);
    if (decided) return undefined;
    assertInTime(approval, draft.at);
    if (deciding.actionHash !== approval.actionHash) {
      throw new CountersignError('APPROVAL_STALE', 'the write has changed since you read it; read it again');
    }
    const people = await decider.definitions.people(tenant, { fresh: true });
    const vote = voteOf(people, approval, deciding, draft.at);
    if (step?.status !== 'waiting_approval') throw closed(approval);
    decided = await apply(decider, state, draft, { approval, step, vote, people }, deciding.decision);
    return concludeRun(decider.runs, state, draft, { noFreeSlot });
  }).catch(async (error: unknown) => {
    if (error instanceof CountersignError && isRecordedRefusal(error.code)) {
      await recordRefusal(decider, target, deciding, error.code);
    }
    // Another decision has ended the run meanwhile: the approval shows which.
    if (!(error instanceof CountersignError) || error.code !== 'RUN_TERMINAL_STATE') throw error;
    decided = decidedBefore(await read(decider, target, approvalId), deciding);
  });
  if (!decided) throw new CountersignError('NOT_FOUND', `there is no approval ${approvalId}`);
  return decided;
}

async function apply(
  decider: Decider,
  state: RunState,
  draft: RunDraft,
  decidable: DecidableApproval,
  decision: Deciding['decision'],
): Promise<Decided> {
  switch (decision.kind) {
    case 'approve':
      return approve(draft, decidable);
    case 'reject':
      return reject(draft, decidable, decision.reason);
    case 'edit':
      return { approval: await editWrite(decider, state, draft, decidable, decision.fields), outcome: 'edited' };
  }
}

function approve(draft: RunDraft, { approval, step, vote, people }: DecidableApproval): Decided {
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

function reject(draft: RunDraft, { approval, step, vote }: DecidableApproval, reason: string): Decided {
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

/** The step that requested the approval, and other steps of its phase that wait for it. */
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

/** Slack repeats requests and people click twice: the same decision again changes nothing; another one is too late. */
function decidedBefore(approval: Approval, deciding: Deciding): Decided | undefined {
  const { decision, person } = deciding;
  const same =
    decision.kind === 'edit'
      ? isLastEdit(approval, decision.fields, deciding)
      : approval.votes.some((vote) => vote.person === person && vote.decision === decision.kind);
  if (same) return { approval, outcome: 'already' };
  if (!isOpen(approval)) throw closed(approval);
  return undefined;
}

function voted({ approvalId, stepId }: Approval, { person, via, decision, onBehalfOf, rights }: Vote) {
  return {
    type: 'approval.voted' as const,
    step: stepId,
    approvalId,
    person,
    via,
    decision,
    ...(onBehalfOf !== undefined && { onBehalfOf }),
    ...(rights && { rights }),
  };
}
