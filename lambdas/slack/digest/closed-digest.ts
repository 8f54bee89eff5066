import { HEADINGS } from '../../approval/texts/approval-words.ts';
import type { Person } from '../../people/people.ts';
import type { Approval } from '../../run/approval.ts';
import {
  CARD_MAX_CHARACTERS,
  escapedText,
  header,
  italic,
  type Message,
  ownText,
  type Paragraph,
  quoted,
  richText,
} from '../block-kit.ts';
import { voteText } from '../card/card-text.ts';

const TITLE_MAX_CHARACTERS = 100;
const SHOWN_MAX = 40;

/** Replaces the digest when all of its approvals are closed. */
export function closedDigest(approvals: readonly Approval[], people: readonly Person[]): Message {
  const text =
    approvals.length === 1 ? 'The overdue approval is closed' : `All ${approvals.length} overdue approvals are closed`;
  for (let shown = Math.min(approvals.length, SHOWN_MAX); ; shown -= 1) {
    const lines = approvals.slice(0, shown).map((approval) => closedLine(approval, people));
    const left = approvals.length - shown;
    const more: Paragraph[] = left > 0 ? [[italic(`… and ${left} more`)]] : [];
    const blocks = [header(text), richText([...lines, ...more])];
    if (shown <= 1 || JSON.stringify(blocks).length <= CARD_MAX_CHARACTERS) return { text: escapedText(text), blocks };
  }
}

function closedLine(approval: Approval, people: readonly Person[]): Paragraph {
  const { status, title, votes } = approval;
  const decisive = { approved: 'approve', rejected: 'reject' }[status as string];
  const vote = votes.findLast(({ decision }) => decision === decisive);
  return [
    ownText('• '),
    quoted(title, TITLE_MAX_CHARACTERS),
    ownText(': '),
    ...(vote ? voteText(people, vote) : [ownText(HEADINGS[status].toLowerCase())]),
  ];
}
