import { type ApprovalHistory, termsAt } from './approval-history.ts';
import { breachAt, indexOfApproval, isUndo, personOf, text, texts, undoneBy } from './event-fields.ts';
import type { Breach, Rule } from './rule.ts';
import type { PlacedEvent, RunHistory } from './run-history.ts';

const eachApproval = ({ approvals }: RunHistory, check: (approval: ApprovalHistory) => Breach[]): Breach[] =>
  [...approvals.values()].flatMap(check);

const decisionsAs = ({ endings }: ApprovalHistory, status: string) =>
  endings.filter(({ event }) => event.type === 'approval.decided' && event.status === status);

/** Rules about who decides. */
export const VOTE_RULES: readonly Rule[] = [
  {
    number: 9,
    name: 'enough-people-approve',
    description:
      'If an approval is approved, all `people` of the decision have voted to approve since the last edit. They are different people, at least as many as the quorum. Several votes on behalf of one person count once.',
    check: (history) => eachApproval(history, tooFew),
  },
  {
    number: 10,
    name: 'makers-do-not-decide',
    description: 'No voter and no editor was a maker of the write before, and nobody votes on behalf of a maker.',
    check: (history) => eachApproval(history, byMakers),
  },
  {
    number: 11,
    name: 'makers-are-complete',
    description:
      'The makers of an approval include the person who requested the run or its rollback, everybody who edited the write, everybody who sent the run a signal before policy first decided on the step, and everybody who retried the step after it had failed. The makers of a write are makers of its undo.',
    check: (history) => {
      const contributions = new Contributions(history);
      return eachApproval(history, (approval) => missingMakers(contributions, approval));
    },
  },
  {
    number: 12,
    name: 'one-decision-is-final',
    description:
      'An approval ends once, and nothing is voted or edited after that; one vote to reject rejects it in the same commit, and only such a vote does.',
    check: (history) => eachApproval(history, afterTheEnd),
  },
];

/** Reads votes, edits and decisions in their order: an edit makes earlier votes void. */
function tooFew(approval: ApprovalHistory): Breach[] {
  const decisions = decisionsAs(approval, 'approved');
  const all = [...approval.votes, ...approval.terms.map(({ placed }) => placed), ...decisions];
  /** By person: on whose behalf they approved last. */
  let approving = new Map<unknown, string>();
  return all
    .sort((a, b) => a.place - b.place)
    .flatMap((placed) => {
      const { event } = placed;
      if (event.type === 'approval.decided') return tooFewIn(approving, placed, termsAt(approval, placed.place).quorum);
      if (event.type !== 'approval.voted') approving = new Map();
      else if (event.decision === 'approve') approving.set(event.person, text(event.onBehalfOf));
      return [];
    });
}

function tooFewIn(approving: ReadonlyMap<unknown, string>, decided: PlacedEvent, quorum: number): Breach[] {
  const people = texts(decided.event.people);
  const stranger = people.find((person) => !approving.has(person));
  if (stranger !== undefined)
    return [breachAt(decided, `counts ${stranger}, who did not approve it since the last edit`)];
  const places = new Set(people.map((person) => approving.get(person) || person));
  const counted = Math.min(new Set(people).size, places.size);
  if (new Set(people).size < people.length) return [breachAt(decided, 'counts one person twice')];
  return counted >= quorum ? [] : [breachAt(decided, `is approved by ${counted} of ${quorum} people`)];
}

/** An edit makes the editor a maker of everything after it. */
function byMakers(approval: ApprovalHistory): Breach[] {
  const isMakerAt = (place: number, person: string) => termsAt(approval, place).makersAndPeople.has(person);
  const votes = approval.votes.flatMap((vote) => {
    const people = [vote.event.person, vote.event.onBehalfOf].map(text);
    const maker = people.find((person) => isMakerAt(vote.place, person));
    return maker === undefined ? [] : [breachAt(vote, `is a vote of or for ${maker}, who is a maker of the write`)];
  });
  const edits = approval.terms.slice(1).flatMap(({ placed }) => {
    const editor = text(placed.event.person);
    const isMaker = isMakerAt(placed.place - 1, editor);
    return isMaker ? [breachAt(placed, `is an edit of ${editor}, who is a maker of the write`)] : [];
  });
  return [...votes, ...edits];
}

function missingMakers(contributions: Contributions, approval: ApprovalHistory): Breach[] {
  return approval.terms.flatMap(({ placed, makersAndPeople }) => {
    // At most one more than the makers are read: then one is missing.
    for (const { person, actor } of contributions.to(approval.index, placed.place)) {
      if (!makersAndPeople.has(person)) return [breachAt(placed, `leaves out ${actor}, who is a maker of the write`)];
    }
    return [];
  });
}

interface Contribution {
  person: string;
  actor: string;
  placed: PlacedEvent;
}

/** The people whose input is in calls, as far as the commits show it. */
class Contributions {
  /** To the run, until policy first decides on a step. Each person once, by the first contribution. */
  readonly #toRun = new Map<string, Contribution>();
  /** The person who requested the run contributes to every step. */
  readonly #requester: Contribution[] = [];
  readonly #toStep = new Map<number, Map<string, Contribution>>();
  readonly #firstDecided = new Map<unknown, PlacedEvent>();
  readonly #isRollback: boolean;

  constructor({ events, document }: RunHistory) {
    this.#isRollback = document.run.rollbackOf !== undefined;
    const failed = new Set<unknown>();
    for (const placed of events) {
      const { event, seq } = placed;
      const { type, index } = event;
      const actor = text(event.actor);
      if (type === 'policy.decided' && !this.#firstDecided.has(index)) this.#firstDecided.set(index, placed);
      if (type === 'run.requested' && seq === 1 && !actor.startsWith('schedule:'))
        this.#requester.push({ person: personOf(actor), actor, placed });
      const isRollback = type === 'run.stop_requested' && event.kind === 'rollback';
      if (type === 'run.rolls_back' || type === 'step.signaled' || isRollback) add(this.#toRun, actor, placed);
      if (type === 'approval.edited') add(this.#ofStep(indexOfApproval(event.approvalId)), text(event.person), placed);
      if (type === 'step.failed') failed.add(index);
      if (type === 'step.retry_requested' && failed.delete(index)) add(this.#ofStep(Number(index)), actor, placed);
    }
  }

  #ofStep(index: number): Map<string, Contribution> {
    const known = this.#toStep.get(index) ?? new Map<string, Contribution>();
    this.#toStep.set(index, known);
    return known;
  }

  /** Up to and including some position. The makers of a write are also makers of its undo. */
  *to(index: number, until: number): Generator<Contribution> {
    yield* this.#requester.filter(({ placed }) => placed.place <= until);
    const decided = this.#firstDecided.get(index);
    const fixedIn = decided && decided.place <= until ? decided.seq : Number.POSITIVE_INFINITY;
    for (const each of this.#toRun.values()) {
      if (each.placed.place > until || each.placed.seq >= fixedIn) break;
      yield each;
    }
    for (const each of this.#toStep.get(index)?.values() ?? []) {
      if (each.placed.place > until) break;
      yield each;
    }
    const undone = undoneBy(index);
    if (isUndo(index) && !isUndo(undone) && !this.#isRollback) yield* this.to(undone, until);
  }
}

function add(to: Map<string, Contribution>, actor: string, placed: PlacedEvent): void {
  const person = personOf(actor);
  if (!to.has(person)) to.set(person, { person, actor, placed });
}

function afterTheEnd(approval: ApprovalHistory): Breach[] {
  const { approvalId, endings, votes, terms } = approval;
  const [end] = endings;
  const rejections = votes.filter(({ event }) => event.decision === 'reject');
  const rejected = decisionsAs(approval, 'rejected');
  const [votedIn, rejectedIn] = [rejections, rejected].map((list) => new Set(list.map(({ seq }) => seq)));
  const unrejected = rejections.filter(({ seq }) => !rejectedIn?.has(seq));
  const baseless = rejected.filter(({ seq }) => !votedIn?.has(seq));
  const late = end
    ? [...endings.slice(1), ...votes, ...terms.map(({ placed }) => placed)].filter(({ place }) => place > end.place)
    : [];
  return [
    ...unrejected.map((each) => breachAt(each, `rejects ${approvalId}, but the approval is not rejected by it`)),
    ...baseless.map((each) => breachAt(each, `rejects ${approvalId} without a vote to reject it`)),
    ...late.map((each) => breachAt(each, `changes ${approvalId} after it had ended in commit ${end?.seq}`)),
  ];
}
