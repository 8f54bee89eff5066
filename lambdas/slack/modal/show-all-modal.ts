import { messageLabel, REASONS, unreadText } from '../../approval/texts/approval-words.ts';
import { type ChangedField, changesOf } from '../../approval/texts/changed-fields.ts';
import { makerText } from '../../approval/texts/maker-names.ts';
import type { Approval } from '../../run/approval.ts';
import type { ApprovalPhase } from '../../run/approval-phase.ts';
import { type Block, bold, MODAL_BLOCKS_MAX, type Modal, ownText, plainText, quoted, richText } from '../block-kit.ts';
import type { Seen } from '../card/approval-card.ts';
import { escapeInPieces } from '../escape-hidden-characters.ts';

export const SHOW_ALL_CALLBACK = 'countersign_show_all';

/** A longer text continues in the next box. */
const BOX_MAX_CHARACTERS = 2_900;
/** A modal has at most 250 kB: four bytes per character, twice that for JSON escapes. */
const PAGE_MAX_CHARACTERS = 24_000;
const LABEL_MAX_CHARACTERS = 200;

/** One labelled text; `name` is an external name before the label. */
interface Entry {
  label: string;
  name?: string;
  text: string | null;
}

export interface ShownPage extends Seen {
  page: number;
}

/** One page with all details of an approval. Its submit button shows the next page, and after the last page the first. */
export function showAllModal(approval: Approval, wanted: number): Modal {
  const pages = pagesOf(approval);
  const page = wanted % pages.length;
  const { approvalId, actionHash } = approval;
  const shown: ShownPage = { approvalId, actionHash, page };
  return {
    type: 'modal',
    callback_id: SHOW_ALL_CALLBACK,
    private_metadata: JSON.stringify(shown),
    title: plainText(pages.length === 1 ? 'All details' : `Page ${page + 1} of ${pages.length}`),
    ...(pages.length > 1 && { submit: plainText(page + 1 === pages.length ? 'First page' : 'Next page') }),
    close: plainText('Close'),
    blocks: pages[page] ?? [],
  };
}

function pagesOf(approval: Approval): Block[][] {
  const pages: Block[][] = [[]];
  let room = PAGE_MAX_CHARACTERS;
  for (const { label, name, text } of entriesOf(approval)) {
    for (const [index, piece] of (text === null ? [''] : escapeInPieces(text, BOX_MAX_CHARACTERS)).entries()) {
      const size = label.length + LABEL_MAX_CHARACTERS + piece.length;
      if (size > room || (pages.at(-1)?.length ?? 0) === MODAL_BLOCKS_MAX) {
        pages.push([]);
        room = PAGE_MAX_CHARACTERS;
      }
      room -= size;
      const named = name === undefined ? [] : [quoted(name, LABEL_MAX_CHARACTERS), ownText(' ')];
      const title = [...named, bold(index === 0 ? label : `${label}, continued`)];
      pages.at(-1)?.push(richText(text === null ? [[...title, ownText(' not set')]] : [title, { box: piece }]));
    }
  }
  return pages;
}

function entriesOf(approval: Approval): Entry[] {
  const { action, message, title, subject, grounds, asks, makers, votes, edits, actionHash, automation } = approval;
  const { written, follows } = changesOf(approval);
  const entry = (label: string, text: string): Entry => ({ label, text });
  return [
    ...(message === undefined ? [] : [entry(messageLabel(approval), message)]),
    ...(action ? [entry('Tool', action.tool), entry('Target', action.target)] : []),
    ...written.flatMap(fieldEntries),
    ...follows.flatMap(fieldEntries),
    ...unreadEntries(approval),
    ...(approval.phase ? phaseEntries(approval.phase) : []),
    entry('About', title),
    ...(subject === undefined ? [] : [entry('Subject', subject)]),
    entry('Automation', automation),
    entry('Why', [REASONS[asks], ...grounds.reasons].join('\n')),
    ...(action?.derived ? [entry('From a model', JSON.stringify(action.derived, null, 2))] : []),
    ...(grounds.policies.length > 0 ? [entry('Policies', grounds.policies.join('\n'))] : []),
    entry('Policy set', grounds.policyHash),
    entry('Action', actionHash),
    ...(makers.length > 0
      ? [entry('Had a hand in this write', makers.map((maker) => makerText(approval, maker)).join('\n'))]
      : []),
    ...votes.map((vote) => entry(`Vote, ${vote.at}`, JSON.stringify(vote, null, 2))),
    ...edits.map((edit) => entry(`Edit, ${edit.at}`, JSON.stringify(edit, null, 2))),
  ];
}

function phaseEntries({ name, writes, askedLater }: ApprovalPhase): Entry[] {
  return [
    ...writes.flatMap((write) => {
      const { written, follows } = changesOf(write);
      const { tool, target, derived } = write.action;
      return [
        { name: write.stepId, label: `also in the phase ${name}`, text: `${tool}\n${target}` },
        ...[...written, ...follows].flatMap(fieldEntries),
        ...unreadEntries(write),
        ...(derived ? [{ label: 'From a model', text: JSON.stringify(derived, null, 2) }] : []),
      ];
    }),
    ...askedLater.map(({ stepId, tool, because }) => ({
      name: stepId,
      label: 'needs its own approval',
      text: `${tool}\n${because}`,
    })),
  ];
}

function unreadEntries(write: Pick<Approval, 'unread'>): Entry[] {
  const text = unreadText(write);
  return text === undefined ? [] : [{ label: 'Not read', text }];
}

function fieldEntries({ name, from, to }: ChangedField): Entry[] {
  const is = from === undefined ? [] : [{ name, label: 'is now', text: from }];
  return [...is, { name, label: 'will be', text: to }];
}
