import { countedVotes } from '../../approval/votes.ts';
import type { Person } from '../../people/people.ts';
import { type Approval, type ApprovalStatus, isOpen } from '../../run/approval.ts';
import {
  aside,
  type Block,
  button,
  CARD_MAX_CHARACTERS,
  context,
  escapedText,
  header,
  type Message,
  moment,
  type Paragraph,
  quoted,
  richText,
  strong,
  words,
} from '../block-kit.ts';
import { boxed, content, ROOM } from './card-changes.ts';
import { approvedSoFar, derivedWords, listed, neededWords, personWords, voteWords, WHY } from './card-text.ts';

export const ACTIONS = {
  approve: 'countersign_approve',
  reject: 'countersign_reject',
  edit: 'countersign_edit',
  showAll: 'countersign_show_all',
  morePending: 'countersign_more_pending',
} as const;

/** What a button carries: which approval, and what the person saw when they pressed it. */
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
const HEADINGS: Record<ApprovalStatus, string> = {
  requested: 'Approval needed',
  notified: 'Approval needed',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired without a decision',
  canceled: 'Canceled before a decision',
};

/** Everything a person needs to decide, and nothing that a payload could have made up: see block-kit.ts. */
export function approvalCard(approval: Approval, people: readonly Person[], nowMs: number): Message {
  const open = isOpen(approval) && nowMs < Date.parse(approval.expiresAt);
  const around = {
    above: [header(heading(approval)), ...outcome(approval, people), richText(about(approval))],
    below: [richText(why(approval)), richText(who(approval, people)), context(ids(approval)), actions(approval, open)],
  };
  for (const room of ROOM) {
    const blocks = [...around.above, richText(content(approval, room)), ...around.below];
    if (JSON.stringify(blocks).length <= CARD_MAX_CHARACTERS) return { text: fallback(approval), blocks };
  }
  throw new Error(`the card of ${approval.approvalId} has no form that Slack takes`);
}

const subjectOf = ({ action, stepId }: Approval): string => action?.tool ?? stepId;

function heading(approval: Approval): string {
  const overdue = isOpen(approval) && approval.escalatedAt !== undefined ? 'Overdue. ' : '';
  return `${overdue}${HEADINGS[approval.status]}: ${subjectOf(approval)}`;
}

/** What became of it, with every vote there was: that a yes was too late, or one of too few, is part of it. */
function outcome(approval: Approval, people: readonly Person[]): Block[] {
  const { status, votes, escalatedAt } = approval;
  if (isOpen(approval)) {
    if (escalatedAt === undefined) return [];
    const late = [strong('Not decided in time.'), words(' Others were called '), moment(escalatedAt), words('.')];
    return [richText([late])];
  }
  const lines = [...ending(approval, people), ...voteLines(approval, people)];
  const reason = status === 'rejected' && votes.find(({ decision }) => decision === 'reject')?.reason;
  if (reason) lines.push(...boxed([words('Because')], reason, REASON_MAX_CHARACTERS));
  return lines.length > 0 ? [richText(lines)] : [];
}

/** What ended it, where it was nobody's decision. */
function ending(approval: Approval, people: readonly Person[]): Paragraph[] {
  const { status, votes, decidedAt, expiresAt } = approval;
  if (status !== 'expired' && status !== 'canceled') return [];
  const when = decidedAt === undefined ? [] : [words(', '), moment(decidedAt)];
  const why =
    status === 'canceled'
      ? [words('Its run ended first'), ...when]
      : [words(votes.length > 0 ? 'Too few approved before ' : 'Nobody decided before '), moment(expiresAt)];
  const soFar = votes.length > 0 && approvedSoFar(approval, people);
  return [[...why, words(`. Nothing was written.${soFar ? ` ${soFar}:` : ''}`)]];
}

/** The last ones: the one that decided is among them. */
function voteLines(approval: Approval, people: readonly Person[]): Paragraph[] {
  const { votes } = approval;
  const counted = countedVotes(approval, people);
  const lines: Paragraph[] = votes
    .slice(-VOTES_MAX)
    .map((vote) => [
      words('• '),
      ...voteWords(people, vote),
      ...(isOpen(approval) && !counted.includes(vote) ? [aside(', which does not count')] : []),
    ]);
  const left = votes.length - VOTES_MAX;
  return left > 0 ? [[aside(`… and ${left} votes before: press “Show all”`)], ...lines] : lines;
}

function about({ title, subject, action, automation, workflow, stepId }: Approval): Paragraph[] {
  const lines: Paragraph[] = [
    [
      words('About '),
      quoted(title, TEXT_MAX_CHARACTERS),
      ...(subject ? [words(' · '), quoted(subject, TEXT_MAX_CHARACTERS)] : []),
    ],
  ];
  if (action) {
    lines.push([words('At '), quoted(action.target, TEXT_MAX_CHARACTERS), words(` in ${action.environment}`)]);
  }
  lines.push([
    words('By '),
    quoted(automation, TEXT_MAX_CHARACTERS),
    words(', workflow '),
    quoted(`${workflow.name} v${workflow.version}`, TEXT_MAX_CHARACTERS),
    words(', step '),
    quoted(stepId, TEXT_MAX_CHARACTERS),
  ]);
  return lines;
}

function why(approval: Approval): Paragraph[] {
  const { asks, grounds } = approval;
  const { reasons, policies, policyHash } = grounds;
  const left = reasons.length - REASONS_MAX;
  return [
    [strong(isOpen(approval) ? 'Why you are asked' : 'Why people were asked')],
    [words(WHY[asks])],
    ...(approval.action ? derivedWords(approval.action).slice(0, DERIVED_MAX) : []),
    ...reasons.slice(0, REASONS_MAX).map((reason) => [words('• '), quoted(reason, REASON_MAX_CHARACTERS)]),
    ...(left > 0 ? [[aside(`… and ${left} more reasons: press “Show all”`)]] : []),
    ...(policies.length > 0
      ? [[words('Policies '), ...listed(policies.map((policy) => quoted(policy, NAME_MAX_CHARACTERS)))]]
      : []),
    [words('Policy set '), quoted(policyHash.slice(0, HASH_SHOWN_CHARACTERS), HASH_SHOWN_CHARACTERS)],
  ];
}

function who(approval: Approval, people: readonly Person[]): Paragraph[] {
  const { makers, edits, expiresAt, slaAt, escalatedAt } = approval;
  const lines: Paragraph[] = [[strong(isOpen(approval) ? 'Who decides' : 'Who could decide')], neededWords(approval)];
  if (isOpen(approval)) {
    const soFar = approvedSoFar(approval, people);
    if (soFar !== undefined) lines.push([strong(`${soFar} so far.`)]);
    lines.push(...voteLines(approval, people));
  }
  if (makers.length > 0) {
    lines.push([
      words('Had a hand in it and cannot approve: '),
      ...listed(makers.map((maker) => personWords(people, maker))),
    ]);
  }
  const edit = edits.at(-1);
  if (edit) {
    const names = edit.changes.map(({ field }) => quoted(field, NAME_MAX_CHARACTERS)).slice(0, EDITED_FIELDS_MAX);
    const others = edit.changes.length - names.length;
    lines.push([
      personWords(people, edit.person),
      words(' changed '),
      ...listed(names),
      words(others > 0 ? ` and ${others} more, ` : ', '),
      moment(edit.at),
      words('; earlier votes do not count.'),
    ]);
  }
  if (isOpen(approval)) {
    const sooner = escalatedAt === undefined ? [words(', others are called '), moment(slaAt)] : [];
    lines.push([words('Without a decision it expires '), moment(expiresAt), ...sooner, words('.')]);
  }
  return lines;
}

function ids({ runId, approvalId, actionHash }: Approval): string {
  return `Run ${runId} · approval ${approvalId} · action ${actionHash.slice(0, HASH_SHOWN_CHARACTERS)}`;
}

function actions({ approvalId, actionHash, action }: Approval, open: boolean): Block {
  const seen: Seen = { approvalId, actionHash };
  const deciding = [
    button('Approve', ACTIONS.approve, seen, 'primary'),
    button('Reject', ACTIONS.reject, seen, 'danger'),
    ...(action && Object.keys(action.fields).length > 0 ? [button('Edit', ACTIONS.edit, seen)] : []),
  ];
  return { type: 'actions', elements: [...(open ? deciding : []), button('Show all', ACTIONS.showAll, seen)] };
}

function fallback(approval: Approval): string {
  const { action, automation, runId } = approval;
  const at = action ? ` at ${action.target.slice(0, TEXT_MAX_CHARACTERS)}` : '';
  return escapedText(`${heading(approval)}${at}, by ${automation}, run ${runId}`);
}
