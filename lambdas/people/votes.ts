import type { Approval, Vote } from '../run/approval.ts';
import { mayDecide } from './eligibility.ts';
import { type Person, personBehind } from './people.ts';

type Voted = Pick<Approval, 'votes' | 'makers' | 'requirement'>;

/** The makers by current knowledge: an identity may have been assigned to a person after the approval was requested. */
export const makersNow = ({ makers }: Pick<Approval, 'makers'>, people: readonly Person[]): string[] =>
  makers.map((maker) => personBehind(people, maker));

/**
 * The approving votes that count by current knowledge: a voter who is a maker by now, or has lost the right to decide, does
 * not count. A vote on behalf of somebody still counts after the absence has ended.
 */
export function countedVotes(approval: Voted, people: readonly Person[]): Vote[] {
  const makers = makersNow(approval, people);
  // A person who is away and their delegate share one vote.
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

/** The people who may approve. */
export function deciders(approval: Voted, people: readonly Person[], at: string): Person[] {
  const makers = makersNow(approval, people);
  return people.filter(
    (person) => !makers.includes(person.id) && mayDecide(person, people, approval.requirement, makers, at).may,
  );
}

/** How many more people must approve. */
export const stillMissing = (approval: Voted, people: readonly Person[]): number =>
  Math.max(0, approval.requirement.quorum - countedVotes(approval, people).length);
