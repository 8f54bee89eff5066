import { changesOf } from '../../approval/texts/changed-fields.ts';
import { missingApprovers } from '../../approval/texts/missing-approvers.ts';
import type { Person } from '../../people/people.ts';
import { deciders } from '../../people/votes.ts';
import type { Approval } from '../../run/approval.ts';
import {
  type Block,
  bold,
  CARD_MAX_CHARACTERS,
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
  quotedAs,
  richText,
} from '../block-kit.ts';
import { approvedSoFar, personText, requirementText } from '../card/card-text.ts';

const NAME_MAX_CHARACTERS = 60;
const TITLES_IN_NOTIFICATION = 3;

interface Layout {
  /** Characters of titles, targets and messages. */
  textMax: number;
  /** Written fields, and the characters of a value. */
  fieldsMax: number;
  valueMax: number;
  /** People who may decide. */
  peopleMax: number;
  /** Whether subject, requirement and times are shown. */
  inFull: boolean;
}

/** From the most detailed to the shortest; a digest uses the first in which all of its approvals fit into a message. */
const LAYOUTS: readonly [Layout, ...Layout[]] = [
  { textMax: 100, fieldsMax: 3, valueMax: 60, peopleMax: 6, inFull: true },
  { textMax: 60, fieldsMax: 1, valueMax: 40, peopleMax: 3, inFull: false },
  { textMax: 40, fieldsMax: 0, valueMax: 0, peopleMax: 2, inFull: false },
];
/** More entries do not fit into one message of 50 blocks and 12,500 characters. Each costs a request for its link. */
export const SHOWN_MAX = 20;

const MINUTE_MS = 60_000;
const MINUTES_PER_HOUR = 60;
const HOURS_PER_DAY = 24;

interface Listing {
  /** The longest overdue first. */
  approvals: readonly Approval[];
  /** The ids of those that no earlier digest has listed. */
  added: readonly string[];
  people: readonly Person[];
  /** The addresses of cards, by approval. */
  links: ReadonlyMap<string, string>;
  nowMs: number;
}

/** The overdue approvals of a channel, as many as fit into one message. External text is always quoted: see block-kit.ts. */
export function overdueDigest(listing: Listing): Message {
  const { approvals, added } = listing;
  const text = `${counted(approvals.length, 'approval')} ${approvals.length === 1 ? 'is' : 'are'} overdue`;
  const titles = approvals.slice(0, TITLES_IN_NOTIFICATION).map(({ title }) => title);
  const someNew = added.length > 0 && added.length < approvals.length;
  const above = [
    header(text),
    richText([
      [
        ...(someNew ? [bold(`${added.length} new. `)] : []),
        ownText('The longest overdue approval is first. Nothing is written before people decide.'),
      ],
    ]),
  ];
  return { text: escapedText(`${text}: ${titles.join('; ')}`), blocks: [...above, ...entryBlocks(listing, above)] };
}

function entryBlocks(listing: Listing, above: Block[]): Block[] {
  const { approvals } = listing;
  for (const layout of LAYOUTS) {
    const entries = approvals.slice(0, SHOWN_MAX).map((approval) => richText(entryLines(approval, listing, layout)));
    // Only the shortest layout leaves entries out.
    const fewest = layout === LAYOUTS.at(-1) ? 1 : approvals.length;
    for (let shown = entries.length; shown >= fewest; shown -= 1) {
      const blocks = [...entries.slice(0, shown), ...moreBlocks(approvals.length - shown)];
      if (JSON.stringify([...above, ...blocks]).length <= CARD_MAX_CHARACTERS) return blocks;
    }
  }
  throw new Error('the digest is too large for Slack, even with one approval');
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

function entryLines(approval: Approval, listing: Listing, layout: Layout): Paragraph[] {
  const { added, people, links, nowMs } = listing;
  const { approvalId, title, subject, slaAt, expiresAt } = approval;
  const url = links.get(approvalId);
  const late = `Overdue for ${durationText(nowMs - Date.parse(slaAt))}`;
  const times = [ownText(', since '), dateTime(slaAt), ownText('; expires '), dateTime(expiresAt), ownText('.')];
  return [
    [
      quoted(title, layout.textMax),
      ...(subject && layout.inFull ? [ownText(' · '), quoted(subject, layout.textMax)] : []),
      ...(added.includes(approvalId) ? [bold(' new')] : []),
    ],
    writeLine(approval, layout),
    [bold(late), ...(layout.inFull ? times : [ownText('. '), ...whoText(approval, people, nowMs, layout)])],
    ...(layout.inFull
      ? [[...requirementText(approval), ownText(' '), ...whoText(approval, people, nowMs, layout)]]
      : []),
    [
      ...(url === undefined ? [] : [link(url, 'Open the card'), ownText(' or ')]),
      quotedAs(`countersign approvals show ${approvalId}`),
    ],
  ];
}

/** `Would write servicenow.incident.update at …: state 6, category network and 2 more fields`. */
function writeLine(approval: Approval, { textMax, fieldsMax, valueMax }: Layout): Inline[] {
  const { action, stepId, message, phase } = approval;
  if (!action) {
    const about = message === undefined ? [] : [ownText(': '), quoted(message, textMax)];
    return [ownText('The run waits at step '), quoted(stepId, NAME_MAX_CHARACTERS), ...about];
  }
  const { written } = changesOf(approval);
  const fields = written
    .slice(0, fieldsMax)
    .flatMap(({ name, to }, index) => [
      ownText(index === 0 ? ': ' : ', '),
      quoted(name, NAME_MAX_CHARACTERS),
      ownText(' '),
      to === null ? italic('not set') : quoted(to, valueMax),
    ]);
  const left = written.length - fieldsMax;
  const more =
    left > 0 ? `${fieldsMax > 0 ? ' and' : ':'} ${counted(left, fieldsMax > 0 ? 'more field' : 'field')}` : '';
  const writes = phase?.writes.length ?? 0;
  const others = writes > 0 ? `; with ${counted(writes, 'more write')} of the phase` : '';
  return [
    ownText(action.effect === 'read' ? 'Would request ' : 'Would write '),
    quoted(action.tool, NAME_MAX_CHARACTERS),
    ownText(' at '),
    quoted(action.target, textMax),
    ...fields,
    ...(more + others === '' ? [] : [ownText(more + others)]),
  ];
}

/** `1 of 2 have approved so far. Can decide: Ana, Ben and 3 more.` */
function whoText(approval: Approval, people: readonly Person[], nowMs: number, { peopleMax }: Layout): Inline[] {
  const at = new Date(nowMs).toISOString();
  const soFar = approvedSoFar(approval, people);
  const voted = new Set(approval.votes.map(({ person }) => person));
  const may = deciders(approval, people, at).filter(({ id }) => !voted.has(id));
  const left = may.length - peopleMax;
  const names = may
    .slice(0, peopleMax)
    .flatMap(({ id }, index) => [...(index === 0 ? [] : [ownText(', ')]), personText(people, id)]);
  const tooFew = missingApprovers(approval, people, at) !== undefined;
  return [
    ...(soFar === undefined ? [] : [ownText(`${soFar} so far. `)]),
    ...(may.length === 0
      ? [bold('Nobody can decide now.')]
      : [ownText('Can decide: '), ...names, ownText(left > 0 ? ` and ${left} more.` : '.')]),
    ...(tooFew && may.length > 0 ? [bold(' Too few people can.')] : []),
  ];
}

function moreBlocks(left: number): Block[] {
  if (left <= 0) return [];
  return [richText([[bold(`and ${left} more: `), quotedAs('countersign approvals list')]])];
}

/** `12 min`, `2 h 5 min`, `1 d 3 h`. */
function durationText(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / MINUTE_MS));
  const hours = Math.floor(minutes / MINUTES_PER_HOUR);
  if (hours === 0) return `${minutes} min`;
  if (hours < HOURS_PER_DAY) return `${hours} h ${minutes % MINUTES_PER_HOUR} min`;
  return `${Math.floor(hours / HOURS_PER_DAY)} d ${hours % HOURS_PER_DAY} h`;
}
