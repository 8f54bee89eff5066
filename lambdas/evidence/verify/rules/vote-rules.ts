import { type ApprovalHistory, termsAt, votesAt } from './approval-history.ts';
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
      'An approval that is approved has, since its last edit, approving votes of all `people` of the decision, who are different and at least as many as its quorum; votes on behalf of one person count once.',
    check: (history) =>
      eachApproval(history, (approval) => decisionsAs(approval, 'approved').flatMap((each) => tooFew(approval, each))),
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
      'The makers of an approval include the person who requested the run or its rollback, people who edited the write, who sent the run a signal before policy first decided on the step, and who retried the step after it had failed; and the makers of the write that an undo undoes.',
    check: (history) => eachApproval(history, (approval) => missingMakers(history, approval)),
  },
  {
    number: 12,
    name: 'one-decision-is-final',
    description:
      'An approval ends once, and nothing is voted or edited after that; one vote to reject rejects it in the same commit, and only such a vote does.',
    check: (history) => eachApproval(history, afterTheEnd),
  },
];

function tooFew(approval: ApprovalHistory, decided: PlacedEvent): Breach[] {
  const { quorum } = termsAt(approval, decided.place);
  const votes = votesAt(approval, decided.place).filter(({ event }) => event.decision === 'approve');
  const people = texts(decided.event.people);
  const stranger = people.find((person) => !votes.some(({ event }) => event.person === person));
  if (stranger !== undefined)
    return [breachAt(decided, `counts ${stranger}, who did not approve it since the last edit`)];
  const places = new Set(
    people.map((person) => text(votes.findLast(({ event }) => event.person === person)?.event.onBehalfOf) || person),
  );
  const counted = Math.min(new Set(people).size, places.size);
  if (new Set(people).size < people.length) return [breachAt(decided, 'counts one person twice')];
  return counted >= quorum ? [] : [breachAt(decided, `is approved by ${counted} of ${quorum} people`)];
}

/** An edit makes the editor a maker of everything after it. */
function byMakers(approval: ApprovalHistory): Breach[] {
  const makersAt = (place: number) => termsAt(approval, place).makers.flatMap((maker) => [maker, personOf(maker)]);
  const votes = approval.votes.flatMap((vote) => {
    const makers = makersAt(vote.place);
    const maker = [vote.event.person, vote.event.onBehalfOf].map(text).find((person) => makers.includes(person));
    return maker === undefined ? [] : [breachAt(vote, `is a vote of or for ${maker}, who is a maker of the write`)];
  });
  const edits = approval.terms.slice(1).flatMap(({ placed }) => {
    const editor = text(placed.event.person);
    const isMaker = makersAt(placed.place - 1).includes(editor);
    return isMaker ? [breachAt(placed, `is an edit of ${editor}, who is a maker of the write`)] : [];
  });
  return [...votes, ...edits];
}

function missingMakers(history: RunHistory, approval: ApprovalHistory): Breach[] {
  return approval.terms.flatMap(({ placed, makers }) => {
    const known = makers.flatMap((maker) => [maker, personOf(maker)]);
    const missing = [...expectedMakers(history, approval.index, placed.place)].find(
      (person) => !known.includes(person) && !known.includes(personOf(person)),
    );
    return missing === undefined ? [] : [breachAt(placed, `leaves out ${missing}, who is a maker of the write`)];
  });
}

/** The people whose input is in the call of a step, as far as the commits up to some position show it. */
function expectedMakers({ events, document }: RunHistory, index: number, until: number): Set<string> {
  const past = events.slice(0, until + 1);
  const firstDecided = past.find(({ event }) => event.type === 'policy.decided' && event.index === index);
  const fixedIn = firstDecided?.seq ?? Number.POSITIVE_INFINITY;
  const makers = new Set<string>();
  let hasFailed = false;
  for (const { event, seq } of past) {
    const { type } = event;
    const [actor, person] = [text(event.actor), text(event.person)];
    if (type === 'run.requested' && seq === 1 && !actor.startsWith('schedule:')) makers.add(actor);
    const contributes =
      type === 'run.rolls_back' ||
      type === 'step.signaled' ||
      (type === 'run.stop_requested' && event.kind === 'rollback');
    if (contributes && seq < fixedIn) makers.add(actor);
    if (type === 'approval.edited' && indexOfApproval(event.approvalId) === index) makers.add(person);
    if (type === 'step.failed' && event.index === index) hasFailed = true;
    if (type === 'step.retry_requested' && event.index === index && hasFailed) {
      makers.add(actor);
      hasFailed = false;
    }
  }
  if (isUndo(index) && !document.run.rollbackOf) {
    for (const maker of expectedMakers({ events, document } as RunHistory, undoneBy(index), until)) makers.add(maker);
  }
  return makers;
}

function afterTheEnd(approval: ApprovalHistory): Breach[] {
  const { approvalId, endings, votes, terms } = approval;
  const [end] = endings;
  const rejections = votes.filter(({ event }) => event.decision === 'reject');
  const unrejected = rejections.filter(
    ({ seq }) => !decisionsAs(approval, 'rejected').some((each) => each.seq === seq),
  );
  const baseless = decisionsAs(approval, 'rejected').filter(({ seq }) => !rejections.some((each) => each.seq === seq));
  const late = end
    ? [...endings.slice(1), ...votes, ...terms.map(({ placed }) => placed)].filter(({ place }) => place > end.place)
    : [];
  return [
    ...unrejected.map((each) => breachAt(each, `rejects ${approvalId}, but the approval is not rejected by it`)),
    ...baseless.map((each) => breachAt(each, `rejects ${approvalId} without a vote to reject it`)),
    ...late.map((each) => breachAt(each, `changes ${approvalId} after it had ended in commit ${end?.seq}`)),
  ];
}
