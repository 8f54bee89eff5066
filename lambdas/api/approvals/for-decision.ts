import { assertInTime, closed, voteOf } from '../../approval/check-decision.ts';
import {
  HEADINGS,
  modelSentences,
  REASONS,
  requirementSentence,
  undoText,
  WITHOUT_DECISION,
} from '../../approval/texts/approval-words.ts';
import { changesOf } from '../../approval/texts/changed-fields.ts';
import { editableFields, referenceFields } from '../../approval/texts/editable-fields.ts';
import { namesOf } from '../../approval/texts/known-names.ts';
import { makerText } from '../../approval/texts/maker-names.ts';
import { sentenceText } from '../../approval/texts/missing-approvers.ts';
import { findOperation } from '../../connectors/registry.ts';
import type { Person } from '../../people/people.ts';
import { countedVotes, deciders, makersNow } from '../../people/votes.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { ForDecision } from '../contract/approvals.ts';

/** A tenant may have thousands of people. */
const PEOPLE_MAX = 50;
const HAD_A_HAND = 'had a hand in this write';

/** What the caller needs to decide, in the words of the card in Slack. */
export function forDecision(approval: Approval, caller: Caller, people: readonly Person[], at: string): ForDecision {
  const { action, stepId, asks, grounds } = approval;
  const { written, follows } = changesOf(approval);
  return {
    heading: `${HEADINGS[approval.status]}: ${action?.tool ?? stepId}`,
    does: (action && findOperation(action.tool)?.summary) ?? null,
    written,
    follows,
    why: [REASONS[asks], ...(action ? modelSentences(action).map(sentenceText) : []), ...grounds.reasons],
    requirement: sentenceText(requirementSentence(approval)),
    approvedSoFar: countedVotes(approval, people).length,
    withoutDecision: WITHOUT_DECISION,
    undo: action ? undoText(action) : null,
    you: mayCallerDecide(approval, caller, people, at),
    people: peopleOf(approval, people, at),
    editable: editableOf(approval),
  };
}

function mayCallerDecide(
  approval: Approval,
  caller: Caller,
  people: readonly Person[],
  at: string,
): ForDecision['you'] {
  const { approvalId, actionHash, votes } = approval;
  const voted = votes.findLast(({ person }) => person === caller.person)?.decision;
  const own = voted === undefined ? {} : { voted };
  try {
    if (!isOpen(approval)) throw closed(approval);
    assertInTime(approval, at);
    if (caller.machine) return { may: false, why: 'only people decide; sign in yourself' };
    const deciding = { ...caller, approvalId, actionHash, decision: { kind: 'approve' as const }, via: 'api' as const };
    const { onBehalfOf } = voteOf(people, approval, deciding, at);
    return { may: true, ...own, ...(onBehalfOf !== undefined && { onBehalfOf }) };
  } catch (error) {
    if (error instanceof CountersignError) return { may: false, why: error.message, ...own };
    throw error;
  }
}

/** Those who may decide, and the makers, also those who are no known person. */
function peopleOf(approval: Approval, people: readonly Person[], at: string): ForDecision['people'] {
  const makers = makersNow(approval, people);
  const may = deciders(approval, people, at).slice(0, PEOPLE_MAX);
  const mayNot = [...new Set(approval.makers.map((maker, index) => makers[index] ?? maker))].slice(0, PEOPLE_MAX);
  return [
    ...may.map(({ id, name }) => ({ person: id, name: name || id, may: true })),
    ...mayNot.map((maker) => ({
      person: maker,
      name: people.find(({ id }) => id === maker)?.name || makerText(approval, maker),
      may: false,
      why: HAD_A_HAND,
    })),
  ];
}

function editableOf({ action, names }: Approval): ForDecision['editable'] {
  const references = referenceFields(action);
  return Object.entries(editableFields(action)).map(([field, value]) => ({
    field,
    type: typeOf(value),
    value,
    reference: references.includes(field),
    choices: references.includes(field) ? namesOf(names, field).map(([value, name]) => ({ value, name })) : [],
  }));
}

function typeOf(value: unknown): ForDecision['editable'][number]['type'] {
  if (typeof value === 'string') return 'text';
  return typeof value === 'number' || typeof value === 'boolean' ? (typeof value as 'number' | 'boolean') : 'json';
}
