import { stillMissing } from '../../approval/votes.ts';
import { type Person, personBehind } from '../../people/people.ts';
import { type Approval, type ApprovalStatus, type GateReason, isOpen, type Vote } from '../../run/approval.ts';
import { bold, dateTime, type Inline, italic, ownText, quoted, shortened } from '../block-kit.ts';
import { isolateDirection } from '../escape-hidden-characters.ts';

const NAME_MAX_CHARACTERS = 60;
const IDENTITY_MAX_CHARACTERS = 80;
/** Longer lists of people or policies end with the number of the others. */
const LISTED_MAX = 6;

export const HEADINGS: Record<ApprovalStatus, string> = {
  requested: 'Approval needed',
  notified: 'Approval needed',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired without a decision',
  canceled: 'Canceled before a decision',
};

export const REASONS: Record<GateReason, string> = {
  policy: 'Policy requires approval by a person.',
  mode: 'The validation mode of this workflow requires approval before this step.',
  always_two: 'The write is destructive or has a large blast radius: two people must approve it.',
  tainted: 'A model’s output influences the target of this write.',
  step: 'The workflow waits here for approval.',
  approvers: 'The workflow says who must approve this step.',
  retry: 'An earlier attempt at this write failed: an operator decides whether it is sent again.',
};

const VIA: Record<Vote['via'], string> = { slack: 'in Slack', api: 'through the API', console: 'in the console' };

/** The name of a person, or another text (the identity) if it belongs to no known person. */
export function personText(people: readonly Person[], id: string, otherwise = id): Inline {
  const known = people.find((person) => person.id === personBehind(people, id));
  if (!known) return quoted(otherwise, IDENTITY_MAX_CHARACTERS);
  return bold(isolateDirection(shortened(known.name || known.id, NAME_MAX_CHARACTERS)));
}

/** `a, b and 3 more`. */
export function listed(items: Inline[], between = ', '): Inline[] {
  const more = items.length - LISTED_MAX;
  const named = items.slice(0, LISTED_MAX).flatMap((item, index) => (index === 0 ? [item] : [ownText(between), item]));
  return more > 0 ? [...named, ownText(`${between}${more} more`)] : named;
}

/** `Needs 2 people who may approve tier high, from dba or sre, and also from security.` */
export function requirementText(approval: Approval): Inline[] {
  const { quorum, tier, groups, operators } = approval.requirement;
  const people = operators ? 'an operator, or one person' : quorum === 1 ? 'one person' : `${quorum} people`;
  const of = groups.flatMap((set, index) => [
    ownText(index === 0 ? ', from ' : ', and also from '),
    ...listed(
      set.map((group) => quoted(group, NAME_MAX_CHARACTERS)),
      ' or ',
    ),
  ]);
  const needs = isOpen(approval) ? 'Needs' : 'Needed';
  return [ownText(`${needs} ${people} who may approve tier ${tier}`), ...of, ownText('.')];
}

/** `1 of 2 have approved`; undefined if one approval is enough. */
export function approvedSoFar(approval: Approval, people: readonly Person[]): string | undefined {
  const { quorum } = approval.requirement;
  if (quorum === 1) return undefined;
  return `${quorum - stillMissing(approval, people)} of ${quorum} ${isOpen(approval) ? 'have' : 'had'} approved`;
}

export function voteText(people: readonly Person[], { person, via, decision, onBehalfOf, at }: Vote): Inline[] {
  return [
    personText(people, person),
    ownText(` ${decision === 'approve' ? 'approved' : 'rejected'} ${VIA[via]}, `),
    dateTime(at),
    ...(onBehalfOf === undefined ? [] : [italic(', on behalf of '), personText(people, onBehalfOf)]),
  ];
}

const HOW = { carried: 'fills', chosen: 'chooses' } as const;

/** `A model (step classify) chooses channel.` Every card shows it, for every reason of the approval. */
export const modelText = ({ derived = [] }: NonNullable<Approval['action']>): Inline[][] =>
  derived.map(({ field, how, from }) => [
    bold('A model '),
    ownText('(step '),
    ...listed(from.map((id) => quoted(id, NAME_MAX_CHARACTERS))),
    ownText(field === 'when' ? ') decides whether this step runs.' : `) ${HOW[how]} `),
    ...(field === 'when' ? [] : [quoted(field, NAME_MAX_CHARACTERS), ownText('.')]),
  ]);

export function undoText({ undo, reversible, destructive }: NonNullable<Approval['action']>): string {
  if (undo) return 'This undoes an earlier write.';
  if (destructive) return 'It removes something that cannot be restored.';
  return reversible ? 'It can be undone.' : 'It cannot be undone.';
}
