import { mayDecide } from '../people/eligibility.ts';
import { type Person, personBehind } from '../people/people.ts';
import type { Approval, Vote } from '../run/approval.ts';

type Voted = Pick<Approval, 'votes' | 'makers' | 'requirement'>;

/** Who does not count, by now: an identity may have been claimed only after the gate was opened. */
export const makersNow = ({ makers }: Pick<Approval, 'makers'>, people: readonly Person[]): string[] =>
  makers.map((maker) => personBehind(people, maker));

/**
 * The yeses that count, judged by what is known of people now: whoever turned out to be a maker or lost the right to
 * decide has no vote. An absence that simply ended since the vote takes nothing back.
 */
export function countedVotes(approval: Voted, people: readonly Person[]): Vote[] {
  const makers = makersNow(approval, people);
  // Someone who is away and whoever takes their place have one vote between them.
  const places = new Set<string>();
  return approval.votes.filter((vote) => {
    const voter = people.find(({ id }) => id === vote.person);
    if (vote.decision !== 'approve' || !voter || makers.includes(voter.id)) return false;
    const eligible = mayDecide(voter, people, approval.requirement, makers, vote.at);
    const place = eligible.may ? (eligible.onBehalfOf ?? voter.id) : undefined;
    if (place === undefined || places.has(place)) return false;
    places.add(place);
    return true;
  });
}

/** Who may say yes. */
export function deciders(approval: Voted, people: readonly Person[], at: string): Person[] {
  const makers = makersNow(approval, people);
  return people.filter(
    (person) => !makers.includes(person.id) && mayDecide(person, people, approval.requirement, makers, at).may,
  );
}

/** How many more people must say yes. */
export const stillMissing = (approval: Voted, people: readonly Person[]): number =>
  Math.max(0, approval.requirement.quorum - countedVotes(approval, people).length);
