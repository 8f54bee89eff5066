import { editableFields, referenceFields } from '../../approval/texts/editable-fields.ts';
import { nameAndValue, nameOf, namesOf } from '../../approval/texts/known-names.ts';
import { tryParseJson } from '../../entry/parse-json.ts';
import type { Approval } from '../../run/approval.ts';
import { type Block, type InputElement, type Modal, ownText, plainText, quoted, richText } from '../block-kit.ts';
import type { Seen } from '../card/approval-card.ts';
import { hasHiddenCharacters } from '../escape-hidden-characters.ts';

export const REJECT_CALLBACK = 'countersign_reject';
export const EDIT_CALLBACK = 'countersign_edit';
const NOTICE_CALLBACK = 'countersign_notice';
const REASON_BLOCK = 'reason';
const INPUT_ACTION = 'typed';

const REASON_MAX_CHARACTERS = 1_000;
/** Slack's limit of an input. */
const INPUT_MAX_CHARACTERS = 3_000;
/** A modal has at most 100 blocks and 250 kB, including the typed values. */
const INPUTS_MAX = 80;
const INPUTS_MAX_BYTES = 150_000;
const LABEL_MAX_CHARACTERS = 150;
const MULTILINE_FROM_CHARACTERS = 80;
const TARGET_MAX_CHARACTERS = 200;
/** Slack's limit is 2,000. */
const HINT_MAX_CHARACTERS = 500;
const KNOWN_NAMES_MAX = 4;
const HIDDEN_HINT = 'This text contains invisible characters; the card shows them.';

/** The typed values of a modal: block → action → value. */
export type Typed = Record<string, Record<string, { value?: string | null }>>;

export function rejectModal({ approvalId, actionHash, action, stepId }: Approval): Modal {
  const seen: Seen = { approvalId, actionHash };
  return {
    type: 'modal',
    callback_id: REJECT_CALLBACK,
    private_metadata: JSON.stringify(seen),
    title: plainText('Reject'),
    submit: plainText('Reject'),
    close: plainText('Cancel'),
    blocks: [
      richText([[ownText('Nothing will be written: '), quoted(action?.tool ?? stepId, TARGET_MAX_CHARACTERS)]]),
      {
        type: 'input',
        block_id: REASON_BLOCK,
        label: plainText('Reason (the requester will see it)'),
        element: {
          type: 'plain_text_input',
          action_id: INPUT_ACTION,
          multiline: true,
          max_length: REASON_MAX_CHARACTERS,
        },
        optional: false,
      },
    ],
  };
}

/** One input per field; numbers and lists are typed as JSON. */
export function editModal(approval: Approval): Modal {
  const { approvalId, actionHash, action } = approval;
  const seen: Seen = { approvalId, actionHash };
  const fields = editableFields(action);
  const inputs = inputsOf(approval, fields);
  const left = Object.keys(fields).length - inputs.length;
  const unfit = `${left} more ${left === 1 ? 'field does' : 'fields do'} not fit into this form; edit ${left === 1 ? 'it' : 'them'} with "countersign approvals edit".`;
  const rules = 'If you edit, you cannot approve. Earlier votes no longer count, and policy checks the write again.';
  return {
    type: 'modal',
    callback_id: EDIT_CALLBACK,
    private_metadata: JSON.stringify(seen),
    title: plainText('Edit the write'),
    submit: plainText('Save'),
    close: plainText('Cancel'),
    blocks: [
      richText([[ownText('At '), quoted(action?.target ?? '', TARGET_MAX_CHARACTERS)], [ownText(rules)]]),
      ...(left > 0 ? [richText([[ownText(unfit)]])] : []),
      ...inputs,
    ],
  };
}

/** The changed fields, or the errors by block. */
export function typedEdit(
  approval: Approval,
  typed: Typed,
): { changed: Record<string, unknown> } | { errors: Record<string, string> } {
  const changed: [string, unknown][] = [];
  const errors: Record<string, string> = {};
  const references = referenceFields(approval.action);
  for (const [index, [name, was]] of Object.entries(editableFields(approval.action)).entries()) {
    const block = blockOf(index);
    if (typed[block] === undefined) continue;
    const text = typed[block][INPUT_ACTION]?.value ?? '';
    if (sameLines(text, initialText(approval, references, name, was))) continue;
    if (typeof was === 'string') changed.push([name, text]);
    else {
      const value = tryParseJson(text);
      if (value !== undefined) changed.push([name, value]);
      else errors[block] = 'Enter JSON: 12, true, ["a", "b"], or "text" in quotes.';
    }
  }
  return Object.keys(errors).length > 0 ? { errors } : { changed: Object.fromEntries(changed) };
}

export const hasInputs = ({ blocks }: Modal): boolean => blocks.some(({ type }) => type === 'input');

/** The block for an error that belongs to no field. Slack sends the values of all inputs. */
export const firstInput = (typed: Typed): string | undefined => Object.keys(typed)[0];

export const noticeModal = (message: string): Modal => ({
  type: 'modal',
  callback_id: NOTICE_CALLBACK,
  private_metadata: '',
  title: plainText('Not done'),
  close: plainText('Close'),
  blocks: [{ type: 'section', text: plainText(message) }],
});

export function typedReason(typed: Typed): string {
  return (typed[REASON_BLOCK]?.[INPUT_ACTION]?.value ?? '').trim();
}

function inputsOf(approval: Approval, fields: Record<string, unknown>): Block[] {
  const inputs: Block[] = [];
  const references = referenceFields(approval.action);
  let bytes = 0;
  for (const [index, [name, value]] of Object.entries(fields).entries()) {
    const text = initialText(approval, references, name, value);
    const size = Buffer.byteLength(JSON.stringify(text));
    if (text.length > INPUT_MAX_CHARACTERS || bytes + size > INPUTS_MAX_BYTES || inputs.length === INPUTS_MAX) continue;
    bytes += size;
    const element: InputElement = {
      type: 'plain_text_input',
      action_id: INPUT_ACTION,
      multiline: text.length > MULTILINE_FROM_CHARACTERS || text.includes('\n'),
      max_length: INPUT_MAX_CHARACTERS,
      ...(text !== '' && { initial_value: text }),
    };
    inputs.push({
      type: 'input',
      block_id: blockOf(index),
      label: plainText(name === '' ? '""' : name, LABEL_MAX_CHARACTERS),
      element,
      // A field may be emptied.
      optional: true,
      ...hintOf(text, references.includes(name) ? namesOf(approval.names, name) : undefined),
    });
  }
  return inputs;
}

/** A record that the approval knows by name is shown with its name. */
function initialText({ names }: Approval, references: string[], field: string, value: unknown): string {
  const name = references.includes(field) ? nameOf(names, field, value) : undefined;
  return name === undefined ? editable(value) : nameAndValue(name, editable(value));
}

function hintOf(text: string, records: [id: string, name: string][] | undefined) {
  if (hasHiddenCharacters(text)) return { hint: plainText(HIDDEN_HINT) };
  if (!records) return {};
  const known = records.map(([, name]) => name).slice(0, KNOWN_NAMES_MAX);
  const names = known.length > 0 ? `, or one of these names: ${known.join(', ')}` : '';
  return { hint: plainText(`Enter a sys_id${names}.`, HINT_MAX_CHARACTERS) };
}

const blockOf = (index: number): string => `field-${index}`;

const editable = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** Slack may return other line endings than it got. */
const sameLines = (a: string, b: string): boolean => a.replaceAll('\r\n', '\n') === b.replaceAll('\r\n', '\n');
