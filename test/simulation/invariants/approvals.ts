import type { Decided } from '../../../lambdas/approval/decide.ts';
import type { Risk } from '../../../lambdas/connectors/connector.ts';
import { personBehind } from '../../../lambdas/people/people.ts';
import { type Approval, isOpen, type Vote } from '../../../lambdas/run/approval.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { type Step, UNDO_INDEX_OFFSET } from '../../../lambdas/run/step.ts';
import { AUTHOR, PEOPLE, personById } from '../actors/simulated-people.ts';
import { ExpectedMakers } from './expected-makers.ts';
import type { Report } from './report.ts';

const TIERS: readonly Risk[] = ['low', 'medium', 'high'];
/** With faults: by then the sweeper has sent the outbox entry five times, the last times without any fault. */
const PUBLISHED_DESPITE_FAULTS_WITHIN_MS = 60 * 60_000;
const PUBLISHED_WITHIN_MS = 60_000;
export const NO_EARLIER_TOKEN = 'a task token replaces no later one';
const STEP_ERROR_OF: Partial<Record<Approval['status'], string>> = {
  expired: 'APPROVAL_EXPIRED',
  rejected: 'APPROVAL_REJECTED',
};

/** Who may approve, when an approval is approved, and that nothing else approves it. */
export class ApprovalInvariants {
  readonly #report: Report;
  readonly #approvals = new Map<string, Approval>();
  /** Who has voted to approve since the last edit, by approval. */
  readonly #approvers = new Map<string, Set<string>>();
  /** When an approval was closed, by the clock of the simulation: clocks of functions may be slow. */
  readonly #closedMs = new Map<string, number>();
  /** The number of the last task token, by approval. */
  readonly #waitNumbers = new Map<string, number>();
  readonly #nowMs: () => number;
  readonly expectedMakers = new ExpectedMakers();

  constructor(report: Report, nowMs: () => number) {
    this.#report = report;
    this.#nowMs = nowMs;
  }

  now(approvalId: string): Approval | undefined {
    return this.#approvals.get(approvalId);
  }

  all(): Iterable<Approval> {
    return this.#approvals.values();
  }

  /** A commit of the run has stored this approval. */
  committed(run: Run, steps: readonly Step[], commit: Commit, approval: Approval): void {
    const before = this.#approvals.get(approval.approvalId);
    this.#changed(approval);
    this.#count(approval, commit);
    if (isOpen(approval) || (before && !isOpen(before))) return;
    switch (approval.status) {
      case 'approved':
        this.#checkApproved(run, commit, approval);
        break;
      case 'rejected':
        this.#checkRejected(commit, approval);
        break;
      case 'expired':
        if (commit.at < approval.expiresAt) this.#report('no approval expires early', approval.approvalId);
        if (lastVote(approval, 'reject')) this.#report('an expiry is not recorded as a rejection', approval.approvalId);
        break;
    }
    const step = steps.find(({ index }) => index === approval.stepIndex);
    const wanted = STEP_ERROR_OF[approval.status];
    if (wanted !== undefined && step && 'error' in step && step.error.code !== wanted) {
      this.#report(
        'an expiry is not recorded as a rejection',
        `${approval.approvalId} is ${approval.status}, ${step.error.code}`,
      );
    }
  }

  /** Its announcement or its Step Functions execution has changed it without a commit: that decides nothing. */
  changedWithoutCommit(before: Approval, changes: Partial<Approval>): void {
    const stored = { ...before, ...changes, revision: before.revision + 1 };
    if (!isOpen(stored)) this.#report('only people, its expiry and its run close an approval', before.approvalId);
    this.#changed(stored);
  }

  /** The decision that a person got as response is stored. */
  decided(approvalId: string, { outcome }: Decided): void {
    const status = this.#approvals.get(approvalId)?.status;
    if ((outcome === 'approved' || outcome === 'rejected') && status !== outcome) {
      this.#report('responses show the stored decision', `${approvalId} is ${status}, the response was ${outcome}`);
    }
  }

  /** Only the last token ends the wait of the execution. */
  tokenStored(approvalId: string, waitNumber: number): void {
    const last = this.#waitNumbers.get(approvalId) ?? waitNumber;
    if (waitNumber < last) this.#report(NO_EARLIER_TOKEN, `${approvalId}: ${waitNumber} after ${last}`);
    this.#waitNumbers.set(approvalId, Math.max(last, waitNumber));
  }

  /** An execution ended although its token was not used: then the decision must be recent. */
  endedWithoutToken(approvalId: string, amidFaults: boolean): void {
    const closedMs = this.#closedMs.get(approvalId);
    if (closedMs === undefined || this.#approvals.get(approvalId)?.status === 'expired') return;
    const withinMs = amidFaults ? PUBLISHED_DESPITE_FAULTS_WITHIN_MS : PUBLISHED_WITHIN_MS;
    if (this.#nowMs() - closedMs > withinMs) this.#report('a decision ends the wait for it', approvalId);
  }

  #changed(approval: Approval): void {
    const { approvalId, revision, status } = approval;
    const before = this.#approvals.get(approvalId);
    this.#approvals.set(approvalId, approval);
    if (!isOpen(approval) && !this.#closedMs.has(approvalId)) this.#closedMs.set(approvalId, this.#nowMs());
    if (before && !isOpen(before)) {
      this.#report('an approval has one final status', `${approvalId} was ${before.status}, is ${status}`);
    }
    if (revision !== (before?.revision ?? 0) + 1)
      this.#report('an approval changes by one revision at a time', approvalId);
    // The commit that requests it may also end its run, which cancels it.
    if (!before && status !== 'requested' && status !== 'canceled') {
      this.#report('an approval starts as requested', approvalId);
    }
    if (before?.status === 'notified' && status === 'requested') {
      this.#report('an approval changes by one revision at a time', approvalId);
    }
  }

  #count({ approvalId, votes }: Approval, commit: Commit): void {
    const approvers = this.#approvers.get(approvalId) ?? new Set();
    this.#approvers.set(approvalId, approvers);
    for (const event of commit.events) {
      if (!('approvalId' in event) || event.approvalId !== approvalId) continue;
      if (event.type === 'approval.voted' && event.decision === 'approve') approvers.add(event.person);
      if (event.type === 'approval.edited') approvers.clear();
    }
    if (new Set(votes.map(({ person, decision }) => `${person} ${decision}`)).size < votes.length)
      this.#report('a person votes once', approvalId);
    const counted = votes.filter(({ decision }) => decision === 'approve');
    if (counted.some(({ person }) => !approvers.has(person))) {
      this.#report('a vote before an edit does not count after it', approvalId);
    }
  }

  #checkApproved(run: Run, commit: Commit, approval: Approval): void {
    const { approvalId, requirement, votes, expiresAt } = approval;
    if (commit.at >= expiresAt) this.#report('an expired approval is not approved', approvalId);
    const isVoted = commit.events.some((event) => event.type === 'approval.voted' && event.approvalId === approvalId);
    if (!isVoted) this.#report('no approval is approved without a vote', approvalId);
    const makers = this.#makersOf(run, approval);
    const counts = votes.filter(
      (vote) => vote.decision === 'approve' && !makers.has(vote.person) && mayApprove(vote, makers, requirement),
    );
    const people = new Set(counts.map(({ person }) => person)).size;
    const places = new Set(counts.map(({ person, onBehalfOf }) => onBehalfOf ?? person)).size;
    if (Math.min(people, places) < requirement.quorum) {
      const voters = votes.map(({ person, onBehalfOf = person }) => `${person} for ${onBehalfOf}`).join(', ');
      this.#report(
        'a quorum consists of different people who are not makers',
        `${approvalId} wants ${requirement.quorum}, has ${voters}; made by ${[...makers].join()}`,
      );
    }
  }

  /** People who started the run, wrote its workflow, or added input to the write since. */
  #makersOf({ runId, trigger, enrichment, request }: Run, { stepIndex }: Approval): Set<string> {
    const undoes = stepIndex >= UNDO_INDEX_OFFSET ? stepIndex - UNDO_INDEX_OFFSET : undefined;
    const actor = enrichment?.actor;
    return new Set([
      AUTHOR,
      ...(request ? [request.actor] : []),
      ...(actor === undefined ? [] : [personBehind(PEOPLE, `${trigger.source}:${actor}`)]),
      ...this.expectedMakers.to(runId, stepIndex, undoes),
    ]);
  }

  #checkRejected(commit: Commit, approval: Approval): void {
    const { approvalId, expiresAt } = approval;
    const vote = lastVote(approval, 'reject');
    const isVoted = commit.events.some(
      (event) =>
        event.type === 'approval.voted' &&
        event.approvalId === approvalId &&
        event.decision === 'reject' &&
        event.person === vote?.person,
    );
    if (!isVoted || !vote?.reason) this.#report('every rejection has a person and a reason', approvalId);
    if (commit.at >= expiresAt) this.#report('an expiry is not recorded as a rejection', approvalId);
  }
}

const lastVote = ({ votes }: Approval, decision: Vote['decision']) =>
  votes.findLast((vote) => vote.decision === decision);

/** With their own right, or as the delegate of somebody who is away and not a maker. */
function mayApprove(vote: Vote, makers: ReadonlySet<string>, requirement: Approval['requirement']): boolean {
  const { tier, groups, operators } = requirement;
  const { person, onBehalfOf = person } = vote;
  const owner = personById(onBehalfOf);
  if (!owner || makers.has(owner.id) || (owner.id !== person && !owner.away)) return false;
  const permission = owner.delegates?.find((each) => each.person === person);
  if (owner.id !== person && !permission) return false;
  // People who got their rights from a maker count as that maker.
  const grounds = [personById(person)?.rights, owner.rights, permission?.rights];
  if (grounds.some((rights) => rights?.dependsOn.some((each) => makers.has(each)))) return false;
  const anyTier = owner.role === 'owner' || owner.role === 'admin';
  if (operators && (anyTier || owner.role === 'operator')) return true;
  const fits = anyTier || (owner.role === 'approver' && TIERS.indexOf(owner.tier) >= TIERS.indexOf(tier));
  return fits && groups.every((set) => set.some((group) => owner.groups.includes(group)));
}
