import type { Decided } from '../../../lambdas/approval/decide.ts';
import type { Risk } from '../../../lambdas/connectors/connector.ts';
import { personBehind } from '../../../lambdas/people/people.ts';
import { type Approval, isOpen, type Vote } from '../../../lambdas/run/approval.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { type Step, UNDO_INDEX_OFFSET } from '../../../lambdas/run/step.ts';
import { AUTHOR, PEOPLE, personOf } from '../people.ts';
import { Contributions } from './contributions.ts';
import type { Report } from './report.ts';

const TIERS: readonly Risk[] = ['low', 'medium', 'high'];
/** However often following it failed: the sweeper has sent it five times by then, the last times without any fault. */
const FOLLOWED_AT_LAST_WITHIN_MS = 60 * 60_000;
const FOLLOWED_WITHIN_MS = 60_000;
const STEP_ERROR_OF: Partial<Record<Approval['status'], string>> = {
  expired: 'APPROVAL_EXPIRED',
  rejected: 'APPROVAL_REJECTED',
};

/** Approvals as commits leave them: who may say yes, when it is one, and that nothing else ever is. */
export class ApprovalsJudge {
  readonly #report: Report;
  readonly #approvals = new Map<string, Approval>();
  /** Who has said yes since it was last edited, by approval. */
  readonly #yes = new Map<string, Set<string>>();
  readonly contributions = new Contributions();

  constructor(report: Report) {
    this.#report = report;
  }

  now(approvalId: string): Approval | undefined {
    return this.#approvals.get(approvalId);
  }

  all(): Iterable<Approval> {
    return this.#approvals.values();
  }

  /** The commit of a run has left this approval so. */
  committed(run: Run, steps: readonly Step[], commit: Commit, approval: Approval): void {
    const before = this.#approvals.get(approval.approvalId);
    this.#changed(approval);
    this.#count(approval, commit);
    if (isOpen(approval) || (before && !isOpen(before))) return;
    switch (approval.status) {
      case 'approved':
        this.#judgeApproved(run, commit, approval);
        break;
      case 'rejected':
        this.#judgeRejected(commit, approval);
        break;
      case 'expired':
        if (commit.at < approval.expiresAt) this.#report('nothing expires early', approval.approvalId);
        if (lastVote(approval, 'reject')) this.#report('expired is not rejected', approval.approvalId);
        break;
    }
    const step = steps.find(({ index }) => index === approval.stepIndex);
    const wanted = STEP_ERROR_OF[approval.status];
    if (wanted !== undefined && step && 'error' in step && step.error.code !== wanted) {
      this.#report('expired is not rejected', `${approval.approvalId} is ${approval.status}, ${step.error.code}`);
    }
  }

  /** The approval's machine has changed it, outside of any commit: that decides nothing. */
  held(before: Approval, changes: Partial<Approval>): void {
    const held = { ...before, ...changes, revision: before.revision + 1 };
    if (!isOpen(held)) this.#report('only people, time and the run itself close an approval', before.approvalId);
    this.#changed(held);
  }

  /** The decision that a person saw is stored and does not change. */
  decided(approvalId: string, { outcome }: Decided): void {
    const status = this.#approvals.get(approvalId)?.status;
    if ((outcome === 'approved' || outcome === 'rejected') && status !== outcome) {
      this.#report('people see what was decided', `${approvalId} is ${status}, somebody saw ${outcome}`);
    }
  }

  /** An execution was not woken: it found out by itself, or never, though people may have decided long before. */
  waited(approvalId: string, nowMs: number, amidFaults: boolean): void {
    const { status, decidedAt } = this.#approvals.get(approvalId) ?? {};
    if (status === undefined || status === 'expired' || decidedAt === undefined) return;
    const withinMs = amidFaults ? FOLLOWED_AT_LAST_WITHIN_MS : FOLLOWED_WITHIN_MS;
    if (nowMs - Date.parse(decidedAt) > withinMs) this.#report('a decision ends the wait', approvalId);
  }

  #changed(approval: Approval): void {
    const { approvalId, revision, status } = approval;
    const before = this.#approvals.get(approvalId);
    this.#approvals.set(approvalId, approval);
    if (before && !isOpen(before)) {
      this.#report('an approval has one final status', `${approvalId} was ${before.status}, is ${status}`);
    }
    if (revision !== (before?.revision ?? 0) + 1) this.#report('an approval changes step by step', approvalId);
    // Asked for by the very commit that ends its run, it is over at once.
    if (!before && status !== 'requested' && status !== 'canceled') {
      this.#report('an approval begins with a request', approvalId);
    }
    if (before?.status === 'notified' && status === 'requested') {
      this.#report('an approval changes step by step', approvalId);
    }
  }

  #count({ approvalId, votes }: Approval, commit: Commit): void {
    const yes = this.#yes.get(approvalId) ?? new Set();
    this.#yes.set(approvalId, yes);
    for (const event of commit.events) {
      if (!('approvalId' in event) || event.approvalId !== approvalId) continue;
      if (event.type === 'approval.voted' && event.decision === 'approve') yes.add(event.person);
      if (event.type === 'approval.edited') yes.clear();
    }
    if (new Set(votes.map(({ person, decision }) => `${person} ${decision}`)).size < votes.length)
      this.#report('a person decides once', approvalId);
    const counted = votes.filter(({ decision }) => decision === 'approve');
    if (counted.some(({ person }) => !yes.has(person))) {
      this.#report('a vote before an edit does not count after it', approvalId);
    }
  }

  #judgeApproved(run: Run, commit: Commit, approval: Approval): void {
    const { approvalId, requirement, votes, expiresAt } = approval;
    if (commit.at >= expiresAt) this.#report('what has expired cannot be approved', approvalId);
    const said = commit.events.some((event) => event.type === 'approval.voted' && event.approvalId === approvalId);
    if (!said) this.#report('silence never approves', approvalId);
    const makers = this.#makersOf(run, approval);
    const counts = votes.filter(
      (vote) => vote.decision === 'approve' && !makers.has(vote.person) && maySay(vote, makers, requirement),
    );
    const people = new Set(counts.map(({ person }) => person)).size;
    const seats = new Set(counts.map(({ person, onBehalfOf }) => onBehalfOf ?? person)).size;
    if (Math.min(people, seats) < requirement.quorum) {
      const voters = votes.map(({ person, onBehalfOf = person }) => `${person} for ${onBehalfOf}`).join(', ');
      this.#report(
        'a quorum is of different people who had no hand in it',
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
      ...this.contributions.to(runId, stepIndex, undoes),
    ]);
  }

  #judgeRejected(commit: Commit, approval: Approval): void {
    const { approvalId, expiresAt } = approval;
    const vote = lastVote(approval, 'reject');
    const said = commit.events.some(
      (event) =>
        event.type === 'approval.voted' &&
        event.approvalId === approvalId &&
        event.decision === 'reject' &&
        event.person === vote?.person,
    );
    if (!said || !vote?.reason) this.#report('only a person rejects, and says why', approvalId);
    if (commit.at >= expiresAt) this.#report('expired is not rejected', approvalId);
  }
}

const lastVote = ({ votes }: Approval, decision: Vote['decision']) =>
  votes.findLast((vote) => vote.decision === decision);

/** In their own right, or in the place of someone who is away and had no hand in it. */
function maySay(vote: Vote, makers: ReadonlySet<string>, requirement: Approval['requirement']): boolean {
  const { tier, groups, operators } = requirement;
  const { person, onBehalfOf = person } = vote;
  const seat = personOf(onBehalfOf);
  if (!seat || makers.has(seat.id) || (seat.id !== person && !seat.away)) return false;
  const permission = seat.delegates?.find((each) => each.person === person);
  if (seat.id !== person && !permission) return false;
  // Who has their rights from a maker is another hand of the maker.
  const grounds = [personOf(person)?.rights, seat.rights, permission?.rights];
  if (grounds.some((rights) => rights?.dependsOn.some((each) => makers.has(each)))) return false;
  const anyTier = seat.role === 'owner' || seat.role === 'admin';
  if (operators && (anyTier || seat.role === 'operator')) return true;
  const fits = anyTier || (seat.role === 'approver' && TIERS.indexOf(seat.tier) >= TIERS.indexOf(tier));
  return fits && groups.every((set) => set.some((group) => seat.groups.includes(group)));
}
