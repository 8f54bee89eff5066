import { fieldsOf, textOf } from '../exchange.ts';

const MAX_BLOCKS_IN_MESSAGE = 50;
const MAX_BLOCKS_IN_MODAL = 100;
const MAX_VIEW_BYTES = 250_000;
const MAX_ID = 255;
const MAX_MODAL_TITLE = 24;
const MAX_PRIVATE_METADATA = 3_000;
const MAX_SECTION_FIELDS = 10;
const MAX_ACTIONS = 25;
const MAX_INPUT = 3_000;
/** Not documented, but known from practice. This counts all of the JSON. */
const MAX_CHARACTERS_IN_MESSAGE = 13_200;
const RICH_TEXT_PARTS = ['rich_text_section', 'rich_text_preformatted', 'rich_text_quote', 'rich_text_list'];

/**
 * The errors of Slack for these blocks; empty if Slack accepts them. Without these checks a card that is too long would fail
 * only in production.
 */
export function blockProblems(blocks: unknown, maxBlocks = MAX_BLOCKS_IN_MESSAGE): string[] {
  if (!Array.isArray(blocks)) return ['blocks must be an array'];
  const problems = blocks.length > maxBlocks ? [`no more than ${maxBlocks} items allowed [json-pointer:/blocks]`] : [];
  return problems.concat(blocks.flatMap((block, index) => problemsOfBlock(fieldsOf(block), `/blocks/${index}`)));
}

/** True if each block is valid but the message is too long. */
export const isTooLongForMessage = (blocks: unknown): boolean =>
  JSON.stringify(blocks ?? []).length > MAX_CHARACTERS_IN_MESSAGE;

function problemsOfBlock(block: Record<string, unknown>, at: string): string[] {
  const problems = tooLong(block.block_id, MAX_ID, `${at}/block_id`);
  const elements = [...listOf(block.elements), block.accessory, block.element].map(fieldsOf);
  problems.push(...elements.flatMap((element) => problemsOfElement(element, at)));
  switch (block.type) {
    case 'header':
      return [...problems, ...required(block.text, at), ...tooLong(textIn(block.text), 150, `${at}/text`)];
    case 'section': {
      const fields = listOf(block.fields);
      if (block.text === undefined && fields.length === 0)
        problems.push(`text or fields is required [json-pointer:${at}]`);
      if (fields.length > MAX_SECTION_FIELDS)
        problems.push(`no more than ${MAX_SECTION_FIELDS} fields allowed [json-pointer:${at}]`);
      problems.push(...fields.flatMap((field) => tooLong(textIn(field), 2_000, `${at}/fields`)));
      return [...problems, ...tooLong(textIn(block.text), 3_000, `${at}/text`)];
    }
    case 'context':
    case 'actions':
      if (listOf(block.elements).length > MAX_ACTIONS)
        problems.push(`no more than ${MAX_ACTIONS} items allowed [json-pointer:${at}/elements]`);
      return listOf(block.elements).length === 0
        ? [...problems, `must provide elements [json-pointer:${at}]`]
        : problems;
    case 'rich_text':
      return [...problems, ...problemsOfRichText(listOf(block.elements).map(fieldsOf), `${at}/elements`)];
    case 'input':
      return [...problems, ...required(block.label, at), ...tooLong(textIn(block.label), 2_000, `${at}/label`)];
    default:
      return typeof block.type === 'string'
        ? problems
        : [...problems, `missing required field: type [json-pointer:${at}]`];
  }
}

function problemsOfRichText(parts: Record<string, unknown>[], at: string): string[] {
  if (parts.length === 0) return [`must provide elements [json-pointer:${at}]`];
  return parts.flatMap((part, index) => {
    const here = `${at}/${index}`;
    if (!RICH_TEXT_PARTS.includes(textOf(part.type))) return [`unsupported type [json-pointer:${here}/type]`];
    const elements = listOf(part.elements).map(fieldsOf);
    if (elements.length === 0) return [`must provide elements [json-pointer:${here}]`];
    const empty = elements.some(({ type, text }) => type === 'text' && textOf(text) === '');
    return empty ? [`must be more than 0 characters [json-pointer:${here}/elements/text]`] : [];
  });
}

function problemsOfElement(element: Record<string, unknown>, at: string): string[] {
  const problems = tooLong(element.action_id, MAX_ID, `${at}/action_id`);
  if (element.type === 'plain_text_input') return [...problems, ...tooLong(element.initial_value, MAX_INPUT, at)];
  if (element.type !== 'button') return problems;
  problems.push(...required(element.text, at), ...tooLong(textIn(element.text), 75, `${at}/text`));
  return [...problems, ...tooLong(element.value, 2_000, `${at}/value`)];
}

/** Slack's error code and messages for an invalid modal. Undefined for a valid one. */
export function viewProblems(view: unknown): { error: string; messages: string[] } | undefined {
  const fields = fieldsOf(view);
  if (JSON.stringify(view ?? null).length > MAX_VIEW_BYTES) return { error: 'view_too_large', messages: [] };
  const messages =
    fields.type === 'modal' ? [] : ['unsupported type: only modal is simulated [json-pointer:/view/type]'];
  messages.push(...required(fields.title, '/view/title'));
  for (const name of ['title', 'submit', 'close']) {
    messages.push(...tooLong(textIn(fields[name]), MAX_MODAL_TITLE, `/view/${name}`));
  }
  messages.push(...tooLong(fields.private_metadata, MAX_PRIVATE_METADATA, '/view/private_metadata'));
  messages.push(...tooLong(fields.callback_id, MAX_ID, '/view/callback_id'));
  messages.push(...blockProblems(fields.blocks, MAX_BLOCKS_IN_MODAL));
  return messages.length > 0 ? { error: 'invalid_arguments', messages } : undefined;
}

export const textIn = (object: unknown): string => textOf(fieldsOf(object).text);

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function required(text: unknown, at: string): string[] {
  return textIn(text) === '' ? [`missing required field: text [json-pointer:${at}]`] : [];
}

function tooLong(value: unknown, max: number, at: string): string[] {
  return textOf(value).length > max ? [`must be less than ${max + 1} characters [json-pointer:${at}]`] : [];
}
