import type { Approval } from '../../run/approval.ts';
import type { ApprovalPhase } from '../../run/approval-phase.ts';
import { type Block, MODAL_BLOCKS_MAX, type Modal, plainText, quoted, richText, strong, words } from '../block-kit.ts';
import type { Seen } from '../card/approval-card.ts';
import { WHY } from '../card/card-text.ts';
import { type ChangedField, changesOf } from '../card/changed-fields.ts';
import { pieces } from '../escape-hidden-characters.ts';

export const SHOW_ALL_CALLBACK = 'countersign_show_all';

/** One box; a longer text goes on in the next. */
const BOX_MAX_CHARACTERS = 2_900;
/** A modal may have 250 kB: at four bytes a character, twice that for JSON's escapes, this stays below. */
const PAGE_MAX_CHARACTERS = 24_000;
const LABEL_MAX_CHARACTERS = 200;

/** A thing that is said in full: a word of ours or a name from outside, what it belongs to, and the text. */
interface Entry {
  label: string;
  name?: string;
  text: string | null;
}

/** What a modal knows of its page when it is turned. */
export interface ShownPage extends Seen {
  page: number;
}

/** One page of everything there is to read of an approval; its submit button turns the page, after the last to the first. */
export function showAllModal(approval: Approval, wanted: number): Modal {
  const pages = pagesOf(approval);
  const page = wanted % pages.length;
  const { approvalId, actionHash } = approval;
  const shown: ShownPage = { approvalId, actionHash, page };
  return {
    type: 'modal',
    callback_id: SHOW_ALL_CALLBACK,
    private_metadata: JSON.stringify(shown),
    title: plainText(pages.length === 1 ? 'All there is' : `Page ${page + 1} of ${pages.length}`),
    ...(pages.length > 1 && { submit: plainText(page + 1 === pages.length ? 'First page' : 'Next page') }),
    close: plainText('Close'),
    blocks: pages[page] ?? [],
  };
}

function pagesOf(approval: Approval): Block[][] {
  const pages: Block[][] = [[]];
  let room = PAGE_MAX_CHARACTERS;
  for (const { label, name, text } of entriesOf(approval)) {
    for (const [index, piece] of (text === null ? [''] : pieces(text, BOX_MAX_CHARACTERS)).entries()) {
      const size = label.length + LABEL_MAX_CHARACTERS + piece.length;
      if (size > room || (pages.at(-1)?.length ?? 0) === MODAL_BLOCKS_MAX) {
        pages.push([]);
        room = PAGE_MAX_CHARACTERS;
      }
      room -= size;
      const named = name === undefined ? [] : [quoted(name, LABEL_MAX_CHARACTERS), words(' ')];
      const title = [...named, strong(index === 0 ? label : `${label}, goes on`)];
      pages.at(-1)?.push(richText(text === null ? [[...title, words(' not set')]] : [title, { box: piece }]));
    }
  }
  return pages;
}

function entriesOf(approval: Approval): Entry[] {
  const { action, message, title, subject, grounds, asks, makers, votes, edits, actionHash, automation } = approval;
  const { written, follows } = changesOf(approval);
  const entry = (label: string, text: string): Entry => ({ label, text });
  return [
    ...(message === undefined ? [] : [entry('To be read', message)]),
    ...(action ? [entry('Tool', action.tool), entry('Target', action.target)] : []),
    ...written.flatMap(fieldEntries),
    ...follows.flatMap(fieldEntries),
    ...(approval.phase ? phaseEntries(approval.phase) : []),
    entry('About', title),
    ...(subject === undefined ? [] : [entry('Subject', subject)]),
    entry('Automation', automation),
    entry('Why', [WHY[asks], ...grounds.reasons].join('\n')),
    ...(action?.derived ? [entry('By a model', JSON.stringify(action.derived, null, 2))] : []),
    ...(grounds.policies.length > 0 ? [entry('Policies', grounds.policies.join('\n'))] : []),
    entry('Policy set', grounds.policyHash),
    entry('Action', actionHash),
    ...(makers.length > 0 ? [entry('Had a hand in it', makers.join('\n'))] : []),
    ...votes.map((vote) => entry(`A vote, ${vote.at}`, JSON.stringify(vote, null, 2))),
    ...edits.map((edit) => entry(`An edit, ${edit.at}`, JSON.stringify(edit, null, 2))),
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
        ...(derived ? [{ label: 'By a model', text: JSON.stringify(derived, null, 2) }] : []),
      ];
    }),
    ...askedLater.map(({ stepId, tool, because }) => ({
      name: stepId,
      label: 'is asked about separately',
      text: `${tool}\n${because}`,
    })),
  ];
}

function fieldEntries({ name, from, to }: ChangedField): Entry[] {
  const is = from === undefined ? [] : [{ name, label: 'is now', text: from }];
  return [...is, { name, label: 'will be', text: to }];
}
