import { fallbackText } from '../connectors/slack/message-text.ts';
import { escapeAndCut, escapeHidden, isolateDirection } from './escape-hidden-characters.ts';

/**
 * Block Kit without mrkdwn: Slack displays rich text and plain text literally, so external text cannot become a mention, a
 * link, an emoji or a line of the card. External text is always in code style or in a box; the card's own text never is.
 */

const HEADER_MAX_CHARACTERS = 150;
const BUTTON_TEXT_MAX_CHARACTERS = 75;
const PLAIN_TEXT_MAX_CHARACTERS = 3_000;
/** Slack documents no limit for all blocks of a message; it returns msg_blocks_too_long from 13,200 characters of JSON. */
export const CARD_MAX_CHARACTERS = 12_500;
export const MODAL_BLOCKS_MAX = 100;

interface PlainText {
  type: 'plain_text';
  text: string;
  emoji: false;
}

interface TextElement {
  type: 'text';
  text: string;
  style?: { bold: true } | { italic: true } | { code: true };
}
interface DateElement {
  type: 'date';
  timestamp: number;
  format: string;
  fallback: string;
}
interface LinkElement {
  type: 'link';
  url: string;
  text: string;
}
export type Inline = TextElement | DateElement | LinkElement;

interface RichPart {
  type: 'rich_text_section' | 'rich_text_preformatted';
  elements: Inline[];
}

export interface Button {
  type: 'button';
  action_id: string;
  text: PlainText;
  value: string;
  style?: 'primary' | 'danger';
}

export interface InputElement {
  type: 'plain_text_input';
  action_id: string;
  multiline: boolean;
  max_length: number;
  initial_value?: string;
}

export type Block =
  | { type: 'header'; text: PlainText }
  | { type: 'rich_text'; elements: RichPart[] }
  | { type: 'section'; text: PlainText; accessory?: Button }
  | { type: 'context'; elements: PlainText[] }
  | { type: 'actions'; elements: Button[] }
  | { type: 'input'; block_id: string; label: PlainText; element: InputElement; optional: boolean; hint?: PlainText };

export interface Message {
  /** For notifications, and for clients that do not display blocks. */
  text: string;
  blocks: Block[];
}

export interface Modal {
  type: 'modal';
  callback_id: string;
  private_metadata: string;
  title: PlainText;
  submit?: PlainText;
  close: PlainText;
  blocks: Block[];
}

export function plainText(text: string, max = PLAIN_TEXT_MAX_CHARACTERS): PlainText {
  return { type: 'plain_text', text: shortened(text, max), emoji: false };
}

/** On one line, escaped, and with `…` at the end if it is too long. */
export function shortened(text: string, max: number): string {
  const whole = escapeAndCut(text, max, 'one');
  return whole.hidden === 0 ? whole.shown : `${escapeAndCut(text, max - 1, 'one').shown}…`;
}

export const header = (text: string): Block => ({ type: 'header', text: plainText(text, HEADER_MAX_CHARACTERS) });
export const context = (text: string): Block => ({ type: 'context', elements: [plainText(text)] });

/** A line of text, or a box. */
export type Paragraph = Inline[] | { box: string };

/** Joins successive lines into one section: Slack breaks lines only at a newline or a box. */
export function richText(paragraphs: Paragraph[]): Block {
  const elements: RichPart[] = [];
  for (const paragraph of paragraphs) {
    const last = elements.at(-1);
    if (!Array.isArray(paragraph)) elements.push(boxOf(paragraph.box));
    else if (last?.type === 'rich_text_section') last.elements.push(ownText('\n'), ...paragraph);
    else elements.push({ type: 'rich_text_section', elements: [...paragraph] });
  }
  return { type: 'rich_text', elements: elements.map((part) => ({ ...part, elements: joined(part.elements) })) };
}

/** Joins successive unstyled elements, because every element counts towards the size of the card. */
function joined(elements: Inline[]): Inline[] {
  const found: Inline[] = [];
  for (const element of elements) {
    const last = found.at(-1);
    if (isOwnText(last) && isOwnText(element)) found[found.length - 1] = ownText(last.text + element.text);
    else found.push(element);
  }
  return found;
}

const isOwnText = (element: Inline | undefined): element is TextElement => element?.type === 'text' && !element.style;

/** Slack rejects an empty text. */
const boxOf = (shown: string): RichPart => ({
  type: 'rich_text_preformatted',
  elements: [{ type: 'text', text: shown === '' ? ' ' : shown }],
});

/** Text of the card itself. */
export const ownText = (text: string): Inline => ({ type: 'text', text });
export const bold = (text: string): Inline => ({ type: 'text', text, style: { bold: true } });
export const italic = (text: string): Inline => ({ type: 'text', text, style: { italic: true } });

/** A link of the card itself: the address comes from Slack or is the console's, never from a payload. */
export const link = (url: string, text: string): Inline => ({ type: 'link', url, text });

/** External text within a line. */
export const quoted = (text: string, max: number): Inline => quotedAs(shortened(text, max));
export const quotedAs = (shown: string): Inline => ({
  type: 'text',
  text: isolateDirection(shown) || ' ',
  style: { code: true },
});

/** Slack displays it in the reader's time zone. */
export function dateTime(iso: string): Inline {
  return {
    type: 'date',
    timestamp: Math.floor(Date.parse(iso) / 1000),
    format: '{date_short_pretty} at {time}',
    fallback: `${iso.slice(0, 16).replace('T', ' ')} UTC`,
  };
}

export function button(label: string, actionId: string, value: object, style?: Button['style']): Button {
  return {
    type: 'button',
    action_id: actionId,
    text: plainText(label, BUTTON_TEXT_MAX_CHARACTERS),
    value: JSON.stringify(value),
    ...(style && { style }),
  };
}

export const escapedText = (text: string): string => fallbackText(escapeHidden(text));

export function sentence(text: string): Message {
  return { text: escapedText(text), blocks: [{ type: 'section', text: plainText(text) }] };
}
