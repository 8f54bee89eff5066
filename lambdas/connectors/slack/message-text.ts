import * as z from 'zod';
import type { TouchedState } from '../../run/receipt.ts';

/** Slack documents no limit of blocks together, and refuses some as msg_blocks_too_long from 13,200 characters of JSON on. */
const BLOCKS_MAX_CHARACTERS = 12_500;

/** chat.update refuses a longer `text`. */
export const TEXT_MAX_CHARACTERS = 4_000;

/** Names and links in `text` stay what they are written as. */
export const AS_WRITTEN = { parse: 'none', link_names: false };
/** And nothing is fetched to be shown below. Only a new message takes these. */
export const POSTED_AS_WRITTEN = { ...AS_WRITTEN, mrkdwn: false, unfurl_links: false, unfurl_media: false };

/** What a message says, as Slack takes it. */
export interface Wording {
  text: string;
  /** Slack is to read `text` as mrkdwn: mentions notify people, links hide where they lead. */
  markdown?: boolean;
}

export const postedContent = (wording: Wording) =>
  wording.markdown ? { text: wording.text } : { ...shownAsItIs(wording.text), ...POSTED_AS_WRITTEN };

/** Text without blocks takes the blocks of an earlier version away. */
export const updatedContent = (wording: Wording) =>
  wording.markdown ? { text: wording.text } : { ...shownAsItIs(wording.text), ...AS_WRITTEN };

/** Rich text is shown letter for letter. `text`, for notifications, is mrkdwn in any case, and has no sign of it left. */
function shownAsItIs(text: string) {
  return { text: fallbackText(text), blocks: [richTextOf(text)] };
}

const richTextOf = (text: string) => ({
  type: 'rich_text',
  elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text }] }],
});

export const fitsIntoMessage = (text: string): boolean =>
  JSON.stringify([richTextOf(text)]).length <= BLOCKS_MAX_CHARACTERS;

/** Outside of blocks Slack reads `&`, `<` and `>` as its own signs: a text that has them would mention, or link. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The text of a message whose blocks say everything, for notifications: escaped, and cut where Slack would refuse it. */
export function fallbackText(text: string): string {
  const whole = escaped(text);
  if (whole.length <= TEXT_MAX_CHARACTERS) return whole;
  let kept = '';
  for (const character of text) {
    const next = escaped(character);
    if (kept.length + next.length >= TEXT_MAX_CHARACTERS) break;
    kept += next;
  }
  return `${kept}…`;
}

const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

const Block = z.looseObject({ type: z.string() });

export const MessageBody = z.object({ text: z.string().default(''), blocks: z.array(Block).default([]) });
export type MessageBody = z.infer<typeof MessageBody>;

/** One line of rich text with nothing in it but text, not even bold. */
const PlainRichText = z.object({
  type: z.literal('rich_text'),
  elements: z.tuple([
    z.object({
      type: z.literal('rich_text_section'),
      elements: z.array(z.object({ type: z.literal('text'), text: z.string(), style: z.undefined().optional() })),
    }),
  ]),
});

/**
 * What a message says, in the terms in which it is written: text that is shown as it is, or mrkdwn with `markdown`.
 * Slack makes rich text of every text; any other block is a layout, which no text holds.
 */
export function stateOf({ text, blocks }: MessageBody): TouchedState {
  const laidOut = blocks.filter(({ type }) => type !== 'rich_text').length;
  if (laidOut > 0) return { text, blocks: laidOut };
  const plain = plainText({ text, blocks });
  return plain === undefined ? { text, markdown: true } : { text: plain };
}

function plainText({ text, blocks: [first, ...more] }: MessageBody): string | undefined {
  if (first === undefined) return text.includes('<') ? undefined : unescaped(text);
  const { data } = PlainRichText.safeParse(first);
  if (data === undefined || more.length > 0) return undefined;
  return data.elements[0].elements.map((element) => element.text).join('');
}
