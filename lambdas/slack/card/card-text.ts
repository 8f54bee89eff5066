import { stillMissing } from '../../approval/votes.ts';
import { type Person, personBehind } from '../../people/people.ts';
import { type Approval, type GateReason, isOpen, type Vote } from '../../run/approval.ts';
import { aside, type Inline, moment, quoted, shortened, strong, words } from '../block-kit.ts';
import { isolated } from '../escape-hidden-characters.ts';

const NAME_MAX_CHARACTERS = 60;
const IDENTITY_MAX_CHARACTERS = 80;
/** Of a list of people, policies or votes, so many are named and the others counted. */
const LISTED_MAX = 6;

export const WHY: Record<GateReason, string> = {
  policy: 'Policy asks for a person’s approval.',
  mode: 'The validation mode of this workflow asks before this step.',
  always_two: 'A large blast radius, or something destructive: two people must agree.',
  tainted: 'A model’s output has a part in where this goes.',
  step: 'The workflow stops here for a person.',
  retry: 'The write was sent before and did not work: an operator decides whether it is sent again.',
};

const VIA: Record<Vote['via'], string> = { slack: 'in Slack', api: 'over the API', console: 'in the console' };

/** A person by name; an identity nobody has claimed as what it is. */
export function personWords(people: readonly Person[], id: string): Inline {
  const known = people.find((person) => person.id === personBehind(people, id));
  if (!known) return quoted(id, IDENTITY_MAX_CHARACTERS);
  return strong(isolated(shortened(known.name || known.id, NAME_MAX_CHARACTERS)));
}

/** `a, b and 3 more`. */
export function listed(items: Inline[], between = ', '): Inline[] {
  const more = items.length - LISTED_MAX;
  const named = items.slice(0, LISTED_MAX).flatMap((item, index) => (index === 0 ? [item] : [words(between), item]));
  return more > 0 ? [...named, words(`${between}${more} more`)] : named;
}

/** `Needs 2 people who may approve tier high, of dba or sre, and also of security.` */
export function neededWords(approval: Approval): Inline[] {
  const { quorum, tier, groups, operators } = approval.requirement;
  const people = operators ? 'an operator, or one person' : quorum === 1 ? 'one person' : `${quorum} people`;
  const of = groups.flatMap((set, index) => [
    words(index === 0 ? ', of ' : ', and also of '),
    ...listed(
      set.map((group) => quoted(group, NAME_MAX_CHARACTERS)),
      ' or ',
    ),
  ]);
  const needs = isOpen(approval) ? 'Needs' : 'Needed';
  return [words(`${needs} ${people} who may approve tier ${tier}`), ...of, words('.')];
}

/** `1 of 2 have approved`, as the quorum is counted; nothing where one yes is all it takes. */
export function approvedSoFar(approval: Approval, people: readonly Person[]): string | undefined {
  const { quorum } = approval.requirement;
  if (quorum === 1) return undefined;
  return `${quorum - stillMissing(approval, people)} of ${quorum} ${isOpen(approval) ? 'have' : 'had'} approved`;
}

export function voteWords(people: readonly Person[], { person, via, decision, onBehalfOf, at }: Vote): Inline[] {
  return [
    personWords(people, person),
    words(` ${decision === 'approve' ? 'approved' : 'rejected'} ${VIA[via]}, `),
    moment(at),
    ...(onBehalfOf === undefined ? [] : [aside(', in place of '), personWords(people, onBehalfOf)]),
  ];
}

const HOW = { carried: 'fills', chosen: 'chooses' } as const;

/** `A model (step classify) chooses channel.` Shown whatever else people are asked for. */
export const derivedWords = ({ derived = [] }: NonNullable<Approval['action']>): Inline[][] =>
  derived.map(({ field, how, from }) => [
    strong('A model '),
    words('(step '),
    ...listed(from.map((id) => quoted(id, NAME_MAX_CHARACTERS))),
    words(field === 'when' ? ') decides whether this is done at all.' : `) ${HOW[how]} `),
    ...(field === 'when' ? [] : [quoted(field, NAME_MAX_CHARACTERS), words('.')]),
  ]);

/** What can be said about taking it back. */
export function undoWords({ undo, reversible, destructive }: NonNullable<Approval['action']>): string {
  if (undo) return 'This takes back an earlier write of the same run.';
  if (destructive) return 'It takes something away that no later write can put back.';
  return reversible ? 'It can be taken back afterwards.' : 'It cannot be taken back afterwards.';
}
