import * as z from 'zod';
import type { TouchedState } from '../../run/receipt.ts';

/** Slack documents no limit for all blocks of a message; it returns msg_blocks_too_long from 13,200 characters of JSON. */
const BLOCKS_MAX_CHARACTERS = 12_500;

/** The limit of `text` in chat.update. */
export const TEXT_MAX_CHARACTERS = 4_000;

/** Slack must not turn names in `text` into mentions or links. */
export const NO_PARSING = { parse: 'none', link_names: false };
/** New messages also get no link previews; chat.update does not accept these options. */
export const NO_PARSING_OR_PREVIEWS = { ...NO_PARSING, mrkdwn: false, unfurl_links: false, unfurl_media: false };

export interface MessageContent {
  text: string;
  /** Slack parses `text` as mrkdwn: mentions notify people, and a link can show another text than its address. */
  markdown?: boolean;
}

export const newMessageBody = ({ text, markdown }: MessageContent) =>
  markdown ? { text } : { ...literalText(text), ...NO_PARSING_OR_PREVIEWS };

/** `text` without blocks removes the blocks of the earlier version. */
export const updatedMessageBody = ({ text, markdown }: MessageContent) =>
  markdown ? { text } : { ...literalText(text), ...NO_PARSING };

/** Slack displays rich text literally. The `text` for notifications is always mrkdwn, so it is escaped. */
function literalText(text: string) {
  return { text: fallbackText(text), blocks: [richTextOf(text)] };
}

const richTextOf = (text: string) => ({
  type: 'rich_text',
  elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text }] }],
});

export const fitsIntoMessage = (text: string): boolean =>
  JSON.stringify([richTextOf(text)]).length <= BLOCKS_MAX_CHARACTERS;

/** Outside of blocks, `&`, `<` and `>` are control characters of Slack, which make mentions and links. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The notification text of a message with blocks: escaped, and shortened to Slack's limit. */
export function fallbackText(text: string): string {
  const whole = escaped(text);
  if (whole.length <= TEXT_MAX_CHARACTERS) return whole;
  let shortened = '';
  for (const character of text) {
    const next = escaped(character);
    if (shortened.length + next.length >= TEXT_MAX_CHARACTERS) break;
    shortened += next;
  }
  return `${shortened}…`;
}

/** Slack escapes these three characters in the text of messages. */
export const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

const Block = z.lazy(() => z.looseObject({ type: z.string() }));

export const MessageBody = z.object({ text: z.string().default(''), blocks: z.array(Block).default([]) });
export type MessageBody = z.infer<typeof MessageBody>;

/** One section of rich text without any style. */
const PlainRichText = z.lazy(() =>
  z.object({
    type: z.literal('rich_text'),
    elements: z.tuple([
      z.object({
        type: z.literal('rich_text_section'),
        elements: z.array(z.object({ type: z.literal('text'), text: z.string(), style: z.undefined().optional() })),
      }),
    ]),
  }),
);

/**
 * A message in the form of the tool's input: literal text, or mrkdwn with `markdown`. Slack stores every text as a
 * rich_text block; other blocks are a layout, which the input cannot express.
 */
export function stateOf({ text, blocks }: MessageBody): TouchedState {
  const layoutBlocks = blocks.filter(({ type }) => type !== 'rich_text').length;
  if (layoutBlocks > 0) return { text, blocks: layoutBlocks };
  const plain = plainText({ text, blocks });
  return plain === undefined ? { text, markdown: true } : { text: plain };
}

function plainText({ text, blocks: [first, ...more] }: MessageBody): string | undefined {
  if (first === undefined) return text.includes('<') ? undefined : unescaped(text);
  const { data } = PlainRichText.safeParse(first);
  if (data === undefined || more.length > 0) return undefined;
  return data.elements[0].elements.map((element) => element.text).join('');
}
