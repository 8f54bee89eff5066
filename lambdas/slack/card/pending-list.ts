import { countedVotes } from '../../approval/votes.ts';
import type { Person } from '../../people/people.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import type { Page, RunStore } from '../../run/run-store.ts';
import {
  type Block,
  button,
  CARD_MAX_CHARACTERS,
  header,
  type Message,
  moment,
  quoted,
  richText,
  sentence,
  words,
} from '../block-kit.ts';
import { ACTIONS } from './approval-card.ts';
import { approvedSoFar, listed, neededWords, personWords } from './card-text.ts';

/** As many as fit into one message: fewer where their texts, or the groups they need, are long. */
const PER_PAGE = [8, 4, 2, 1];
const TEXT_MAX_CHARACTERS = 120;

/** Open approvals, those that wait longest first, with who is needed for each. */
export async function pendingMessage(
  { runs, people }: { runs: Pick<RunStore, 'pendingApprovals'>; people: readonly Person[] },
  tenant: string,
  after?: string,
): Promise<Message> {
  for (const limit of PER_PAGE) {
    const page = await runs.pendingApprovals(tenant, { limit, ...(after !== undefined && { after }) });
    const message = pageMessage(page, people, after);
    if (JSON.stringify(message.blocks).length <= CARD_MAX_CHARACTERS) return message;
  }
  throw new Error(`the first approval after ${after ?? 'the beginning'} has no form that Slack takes`);
}

function pageMessage(page: Page<Approval>, people: readonly Person[], after: string | undefined): Message {
  // The index that lists them may be a moment behind.
  const open = page.items.filter(isOpen);
  if (open.length === 0 && page.next === undefined) {
    return sentence(after === undefined ? 'Nothing waits for an approval.' : 'Nothing more waits for an approval.');
  }
  return {
    text: `${open.length} approvals wait`,
    blocks: [
      header('Waiting for approval'),
      ...open.flatMap((approval) => pendingBlocks(approval, people)),
      ...more(page),
    ],
  };
}

function pendingBlocks(approval: Approval, people: readonly Person[]): Block[] {
  const { approvalId, actionHash, action, stepId, title, automation, requestedAt, expiresAt } = approval;
  const at = action ? [words(' at '), quoted(action.target, TEXT_MAX_CHARACTERS)] : [];
  const soFar = approvedSoFar(approval, people);
  const approved = countedVotes(approval, people).map(({ person }) => personWords(people, person));
  const who = approved.length > 0 ? [words(': '), ...listed(approved)] : [];
  return [
    richText([
      [quoted(action?.tool ?? stepId, TEXT_MAX_CHARACTERS), ...at],
      [words('About '), quoted(title, TEXT_MAX_CHARACTERS), words(', by '), quoted(automation, TEXT_MAX_CHARACTERS)],
      [...neededWords(approval), ...(soFar === undefined ? [] : [words(` ${soFar} so far`), ...who, words('.')])],
      [words('Asked '), moment(requestedAt), words(', expires '), moment(expiresAt)],
    ]),
    { type: 'actions', elements: [button('Show all', ACTIONS.showAll, { approvalId, actionHash })] },
  ];
}

function more({ next }: Page<Approval>): Block[] {
  if (next === undefined) return [];
  return [{ type: 'actions', elements: [button('More', ACTIONS.morePending, { after: next })] }];
}
