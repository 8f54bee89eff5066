import { HEADINGS, REASONS } from '../../approval/texts/approval-words.ts';
import { editableFields } from '../../approval/texts/editable-fields.ts';
import { makerText } from '../../approval/texts/maker-names.ts';
import { missingApprovers } from '../../approval/texts/missing-approvers.ts';
import type { Person } from '../../people/people.ts';
import { countedVotes } from '../../people/votes.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import {
  type Block,
  bold,
  button,
  CARD_MAX_CHARACTERS,
  context,
  dateTime,
  escapedText,
  header,
  type Inline,
  italic,
  link,
  type Message,
  ownText,
  type Paragraph,
  quoted,
  richText,
} from '../block-kit.ts';
import { boxed, changeLines, LAYOUTS } from './card-changes.ts';
import { approvedSoFar, listed, modelText, personText, requirementText, voteText } from './card-text.ts';

export const ACTIONS = {
  approve: 'countersign_approve',
  reject: 'countersign_reject',
  edit: 'countersign_edit',
  showAll: 'countersign_show_all',
  morePending: 'countersign_more_pending',
} as const;

/** The value of a button: the approval, and the hash of the action that the person saw. */
export interface Seen {
  approvalId: string;
  actionHash: string;
}

const HASH_SHOWN_CHARACTERS = 12;
const TEXT_MAX_CHARACTERS = 120;
const REASON_MAX_CHARACTERS = 300;
const REASONS_MAX = 3;
const VOTES_MAX = 6;
const DERIVED_MAX = 5;
const EDITED_FIELDS_MAX = 3;
const NAME_MAX_CHARACTERS = 60;

/**
 * The card with everything a person needs for the decision. External text cannot imitate the card: see block-kit.ts. With the
 * address of the console, it links to the pages of the approval and of the run.
 */
export function approvalCard(
  approval: Approval,
  people: readonly Person[],
  nowMs: number,
  consoleUrl?: string,
): Message {
  const open = isOpen(approval) && nowMs < Date.parse(approval.expiresAt);
  const around = {
    above: [header(heading(approval)), ...outcome(approval, people), richText(about(approval))],
    below: [
      richText(why(approval)),
      richText(who(approval, people, new Date(nowMs).toISOString())),
      ...(consoleUrl === undefined ? [] : [richText([pages(approval, consoleUrl)])]),
      context(ids(approval)),
      actions(approval, open),
    ],
  };
  for (const layout of LAYOUTS) {
    const blocks = [...around.above, richText(changeLines(approval, layout)), ...around.below];
    if (JSON.stringify(blocks).length <= CARD_MAX_CHARACTERS) return { text: fallback(approval), blocks };
  }
  throw new Error(`the card of ${approval.approvalId} is too large for Slack in every layout`);
}

const subjectOf = ({ action, stepId }: Approval): string => action?.tool ?? stepId;

function heading(approval: Approval): string {
  const overdue = isOpen(approval) && approval.escalatedAt !== undefined ? 'Overdue. ' : '';
  return `${overdue}${HEADINGS[approval.status]}: ${subjectOf(approval)}`;
}

/** The outcome with all votes, also those that came too late or were too few. */
function outcome(approval: Approval, people: readonly Person[]): Block[] {
  const { status, votes, escalatedAt } = approval;
  if (isOpen(approval)) {
    if (escalatedAt === undefined) return [];
    const late = [bold('Not decided in time.'), ownText(' Others were notified '), dateTime(escalatedAt), ownText('.')];
    return [richText([late])];
  }
  const lines = [...ending(approval, people), ...voteLines(approval, people)];
  const reason = status === 'rejected' && votes.find(({ decision }) => decision === 'reject')?.reason;
  if (reason) lines.push(...boxed([ownText('Reason')], reason, REASON_MAX_CHARACTERS));
  return lines.length > 0 ? [richText(lines)] : [];
}

/** Why it ended without a decision. */
function ending(approval: Approval, people: readonly Person[]): Paragraph[] {
  const { status, votes, decidedAt, expiresAt } = approval;
  if (status !== 'expired' && status !== 'canceled') return [];
  const when = decidedAt === undefined ? [] : [ownText(', '), dateTime(decidedAt)];
  const why =
    status === 'canceled'
      ? [ownText('The run ended first'), ...when]
      : [ownText(votes.length > 0 ? 'Too few approved before ' : 'Nobody decided before '), dateTime(expiresAt)];
  const soFar = votes.length > 0 && approvedSoFar(approval, people);
  return [[...why, ownText(`. Nothing was written.${soFar ? ` ${soFar}:` : ''}`)]];
}

/** The last votes; the deciding vote is among them. */
function voteLines(approval: Approval, people: readonly Person[]): Paragraph[] {
  const { votes } = approval;
  const counted = countedVotes(approval, people);
  const lines: Paragraph[] = votes
    .slice(-VOTES_MAX)
    .map((vote) => [
      ownText('• '),
      ...voteText(people, vote),
      ...(isOpen(approval) && !counted.includes(vote) ? [italic(', which does not count')] : []),
    ]);
  const left = votes.length - VOTES_MAX;
  return left > 0 ? [[italic(`… and ${left} earlier votes: press “Show all”`)], ...lines] : lines;
}

function about({ title, subject, action, automation, workflow, stepId }: Approval): Paragraph[] {
  const lines: Paragraph[] = [
    [
      ownText('About '),
      quoted(title, TEXT_MAX_CHARACTERS),
      ...(subject ? [ownText(' · '), quoted(subject, TEXT_MAX_CHARACTERS)] : []),
    ],
  ];
  if (action) {
    lines.push([ownText('At '), quoted(action.target, TEXT_MAX_CHARACTERS), ownText(` in ${action.environment}`)]);
  }
  lines.push([
    ownText('By '),
    quoted(automation, TEXT_MAX_CHARACTERS),
    ownText(', workflow '),
    quoted(`${workflow.name} v${workflow.version}`, TEXT_MAX_CHARACTERS),
    ownText(', step '),
    quoted(stepId, TEXT_MAX_CHARACTERS),
  ]);
  return lines;
}

function why(approval: Approval): Paragraph[] {
  const { asks, grounds } = approval;
  const { reasons, policies, policyHash } = grounds;
  const left = reasons.length - REASONS_MAX;
  return [
    [bold(isOpen(approval) ? 'Why you are asked' : 'Why people were asked')],
    [ownText(REASONS[asks])],
    ...(approval.action ? modelText(approval.action).slice(0, DERIVED_MAX) : []),
    ...reasons.slice(0, REASONS_MAX).map((reason) => [ownText('• '), quoted(reason, REASON_MAX_CHARACTERS)]),
    ...(left > 0 ? [[italic(`… and ${left} more reasons: press “Show all”`)]] : []),
    ...(policies.length > 0
      ? [[ownText('Policies '), ...listed(policies.map((policy) => quoted(policy, NAME_MAX_CHARACTERS)))]]
      : []),
    [ownText('Policy set '), quoted(policyHash.slice(0, HASH_SHOWN_CHARACTERS), HASH_SHOWN_CHARACTERS)],
  ];
}

/** Whether the approval can succeed at all with the people of now. */
function warning(approval: Approval, people: readonly Person[], at: string): Paragraph[] {
  const missing = isOpen(approval) ? missingApprovers(approval, people, at) : undefined;
  if (!missing) return [];
  return [
    [
      bold('Warning: '),
      ...missing.map((part) => (typeof part === 'string' ? ownText(part) : quoted(part.name, NAME_MAX_CHARACTERS))),
    ],
  ];
}

function who(approval: Approval, people: readonly Person[], at: string): Paragraph[] {
  const { makers, edits, expiresAt, slaAt, escalatedAt } = approval;
  const lines: Paragraph[] = [[bold(isOpen(approval) ? 'Who decides' : 'Who could decide')], requirementText(approval)];
  lines.push(...warning(approval, people, at));
  if (isOpen(approval)) {
    const soFar = approvedSoFar(approval, people);
    if (soFar !== undefined) lines.push([bold(`${soFar} so far.`)]);
    lines.push(...voteLines(approval, people));
  }
  if (makers.length > 0) {
    lines.push([
      ownText('Had a hand in this write and cannot approve it: '),
      ...listed(makers.map((maker) => personText(people, maker, makerText(approval, maker)))),
    ]);
  }
  const edit = edits.at(-1);
  if (edit) {
    const names = edit.changes.map(({ field }) => quoted(field, NAME_MAX_CHARACTERS)).slice(0, EDITED_FIELDS_MAX);
    const others = edit.changes.length - names.length;
    lines.push([
      personText(people, edit.person),
      ownText(' changed '),
      ...listed(names),
      ownText(others > 0 ? ` and ${others} more, ` : ', '),
      dateTime(edit.at),
      ownText('; earlier votes no longer count.'),
    ]);
  }
  if (isOpen(approval)) {
    const sooner = escalatedAt === undefined ? [ownText('; others are notified '), dateTime(slaAt)] : [];
    lines.push([ownText('Expires '), dateTime(expiresAt), ...sooner, ownText('.')]);
  }
  return lines;
}

const pages = ({ approvalId, runId }: Approval, consoleUrl: string): Inline[] => [
  link(`${consoleUrl}/approvals/${encodeURIComponent(approvalId)}`, 'Open the approval in the console'),
  ownText(' · '),
  link(`${consoleUrl}/runs/${encodeURIComponent(runId)}`, 'Open the run'),
];

function ids({ runId, approvalId, actionHash }: Approval): string {
  return `Run ${runId} · approval ${approvalId} · action ${actionHash.slice(0, HASH_SHOWN_CHARACTERS)}`;
}

function actions({ approvalId, actionHash, action }: Approval, open: boolean): Block {
  const seen: Seen = { approvalId, actionHash };
  const deciding = [
    button('Approve', ACTIONS.approve, seen, 'primary'),
    button('Reject', ACTIONS.reject, seen, 'danger'),
    ...(Object.keys(editableFields(action)).length > 0 ? [button('Edit', ACTIONS.edit, seen)] : []),
  ];
  return { type: 'actions', elements: [...(open ? deciding : []), button('Show all', ACTIONS.showAll, seen)] };
}

function fallback(approval: Approval): string {
  const { action, automation, runId } = approval;
  const at = action ? ` at ${action.target.slice(0, TEXT_MAX_CHARACTERS)}` : '';
  return escapedText(`${heading(approval)}${at}, by ${automation}, run ${runId}`);
}
