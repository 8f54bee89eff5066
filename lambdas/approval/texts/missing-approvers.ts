import { mayDecide } from '../../people/eligibility.ts';
import type { Person } from '../../people/people.ts';
import { whyNotCounted } from '../../people/provenance.ts';
import { makersNow } from '../../people/votes.ts';
import type { Approval } from '../../run/approval.ts';

/** A part of a sentence: our own words, or a name from elsewhere, which a card quotes. */
export type SentencePart = string | { name: string };

export const sentenceText = (parts: readonly SentencePart[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : part.name)).join('');

type Asked = Pick<Approval, 'requirement' | 'makers'>;

/** Longer lists end with the number of the others. */
const NAMED_MAX = 5;

/**
 * Why too few people can approve, and what to do; undefined if enough can. Only a warning: people and absences change, so
 * the approval is still requested and waits.
 */
export function missingApprovers(
  { requirement, makers: asked }: Asked,
  people: readonly Person[],
  at: string,
): SentencePart[] | undefined {
  const makers = makersNow({ makers: asked }, people);
  const isAway = ({ away }: Person) => away !== undefined && away.until > at;
  const places = new Set(
    people.flatMap((person) => {
      if (makers.includes(person.id) || isAway(person)) return [];
      const eligible = mayDecide(person, people, requirement, makers, at);
      return eligible.may ? [eligible.onBehalfOf ?? person.id] : [];
    }),
  );
  if (places.size >= requirement.quorum) return undefined;
  const fitting = people.filter((person) => hasRights(person, requirement));
  const excluded = fitting.filter(({ id }) => makers.includes(id));
  const others = fitting.filter(({ id }) => !makers.includes(id));
  const reasons = [
    ...groupReasons(requirement, fitting),
    ...(excluded.length > 0 ? [[...namesOf(excluded), ' had a hand in this write']] : []),
    ...others
      .filter(isAway)
      .slice(0, NAMED_MAX)
      .map((person) => [...namesOf([person]), ` is away until ${person.away?.until}`]),
    ...others
      .filter((person) => !isAway(person) && whyNotCounted(person, makers, at) !== undefined)
      .slice(0, NAMED_MAX)
      .map((person) => [...namesOf([person]), ' has a right to approve that does not count for this write']),
  ];
  const head =
    places.size === 0
      ? 'nobody can approve this'
      : `only ${places.size} of the ${requirement.quorum} required people can approve this`;
  return [head, ': ', ...joined(reasons), `; ${remedy(requirement)}`];
}

/** By role, tier and groups alone, also for a maker of the write. */
const hasRights = (person: Person, requirement: Asked['requirement']): boolean =>
  mayDecide({ ...person, rights: undefined }, [], requirement, [], '').may;

function groupReasons({ groups, tier, quorum }: Asked['requirement'], fitting: readonly Person[]): SentencePart[][] {
  if (fitting.length >= quorum) return [];
  const number = fitting.length === 0 ? 'no approver' : `only ${fitting.length}`;
  const approvers = `of tier ${tier}`;
  if (groups.length === 0) return [[`there ${fitting.length > 1 ? 'are' : 'is'} ${number} ${approvers}`]];
  const sets = groups.slice(0, NAMED_MAX).map((set) => namesText(set, ' or '));
  const one = groups.flat().length === 1;
  return [[one ? 'group ' : 'groups ', ...joined(sets, ' and '), ` ${one ? 'has' : 'have'} ${number} ${approvers}`]];
}

function remedy({ tier, groups }: Asked['requirement']): string {
  const from = groups.length > 0 ? ' in that group' : '';
  return `add an approver of tier ${tier}${from} with countersign people put, or cancel the run`;
}

const namesOf = (people: readonly Person[]): SentencePart[] =>
  namesText(
    people.map(({ id, name }) => name || id),
    ', ',
  );

function namesText(names: readonly string[], between: string): SentencePart[] {
  const more = names.length - NAMED_MAX;
  const named = names.slice(0, NAMED_MAX).map((name) => [{ name }]);
  return [...joined(named, between), ...(more > 0 ? [`${between}${more} more`] : [])];
}

const joined = (parts: readonly (readonly SentencePart[])[], between = '; '): SentencePart[] =>
  parts.flatMap((part, index) => (index === 0 ? [...part] : [between, ...part]));
