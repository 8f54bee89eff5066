import { modelSentences, requirementSentence } from '../../approval/texts/approval-words.ts';
import type { SentencePart } from '../../approval/texts/missing-approvers.ts';
import { type Person, personBehind } from '../../people/people.ts';
import { stillMissing } from '../../people/votes.ts';
import { type Approval, isOpen, type Vote } from '../../run/approval.ts';
import { bold, dateTime, type Inline, italic, ownText, quoted, shortened } from '../block-kit.ts';
import { isolateDirection } from '../escape-hidden-characters.ts';

const NAME_MAX_CHARACTERS = 60;
const IDENTITY_MAX_CHARACTERS = 80;
/** Longer lists of people or policies end with the number of the others. */
const LISTED_MAX = 6;

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

/** Own words as they are; names from elsewhere quoted. */
const sentence = (parts: readonly SentencePart[]): Inline[] =>
  parts.map((part) => (typeof part === 'string' ? ownText(part) : quoted(part.name, NAME_MAX_CHARACTERS)));

export const requirementText = (approval: Approval): Inline[] => sentence(requirementSentence(approval));

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

/** Every card shows it, for every reason of the approval. */
export const modelText = (action: NonNullable<Approval['action']>): Inline[][] =>
  modelSentences(action).map(([subject, ...rest]) => [bold(String(subject)), ...sentence(rest)]);
