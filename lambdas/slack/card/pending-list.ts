import type { Person } from '../../people/people.ts';
import { countedVotes } from '../../people/votes.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import type { Page, RunStore } from '../../run/run-store.ts';
import {
  type Block,
  button,
  CARD_MAX_CHARACTERS,
  dateTime,
  header,
  type Message,
  ownText,
  quoted,
  richText,
  sentence,
} from '../block-kit.ts';
import { ACTIONS } from './approval-card.ts';
import { approvedSoFar, listed, personText, requirementText } from './card-text.ts';

/** The first number that fits into one message; fewer if the texts are long. */
const PER_PAGE = [8, 4, 2, 1];
const TEXT_MAX_CHARACTERS = 120;

/** Open approvals, the oldest first, with the people that each needs. */
export async function pendingList(
  { runs, people }: { runs: Pick<RunStore, 'pendingApprovals'>; people: readonly Person[] },
  tenant: string,
  after?: string,
): Promise<Message> {
  for (const limit of PER_PAGE) {
    const page = await runs.pendingApprovals(tenant, { limit, ...(after !== undefined && { after }) });
    const message = pageMessage(page, people, after);
    if (JSON.stringify(message.blocks).length <= CARD_MAX_CHARACTERS) return message;
  }
  throw new Error(`the first approval after ${after ?? 'the start'} is too large for Slack`);
}

function pageMessage(page: Page<Approval>, people: readonly Person[], after: string | undefined): Message {
  // The index is eventually consistent and may still list closed approvals.
  const open = page.items.filter(isOpen);
  if (open.length === 0 && page.next === undefined) {
    return sentence(after === undefined ? 'No approvals are pending.' : 'No more approvals are pending.');
  }
  return {
    text: `${open.length} pending approvals`,
    blocks: [
      header('Pending approvals'),
      ...open.flatMap((approval) => pendingBlocks(approval, people)),
      ...more(page),
    ],
  };
}

function pendingBlocks(approval: Approval, people: readonly Person[]): Block[] {
  const { approvalId, actionHash, action, stepId, title, automation, requestedAt, expiresAt } = approval;
  const at = action ? [ownText(' at '), quoted(action.target, TEXT_MAX_CHARACTERS)] : [];
  const soFar = approvedSoFar(approval, people);
  const approved = countedVotes(approval, people).map(({ person }) => personText(people, person));
  const who = approved.length > 0 ? [ownText(': '), ...listed(approved)] : [];
  return [
    richText([
      [quoted(action?.tool ?? stepId, TEXT_MAX_CHARACTERS), ...at],
      [
        ownText('About '),
        quoted(title, TEXT_MAX_CHARACTERS),
        ownText(', by '),
        quoted(automation, TEXT_MAX_CHARACTERS),
      ],
      [
        ...requirementText(approval),
        ...(soFar === undefined ? [] : [ownText(` ${soFar} so far`), ...who, ownText('.')]),
      ],
      [ownText('Requested '), dateTime(requestedAt), ownText(', expires '), dateTime(expiresAt)],
    ]),
    { type: 'actions', elements: [button('Show all', ACTIONS.showAll, { approvalId, actionHash })] },
  ];
}

function more({ next }: Page<Approval>): Block[] {
  if (next === undefined) return [];
  return [{ type: 'actions', elements: [button('More', ACTIONS.morePending, { after: next })] }];
}
