import * as z from 'zod';
import { isAs, type Reversal, type TouchedState } from '../../run/receipt.ts';
import { type Access, Markdown, operation, writeKey } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../target-errors.ts';
import { CHANNEL_NOT_FOUND, findChannel, messagesIn, slack } from './client.ts';
import { findMarked, type PostedMessage, postMarked } from './marked-messages.ts';
import {
  fitsIntoMessage,
  MessageBody,
  type MessageContent,
  newMessageBody,
  stateOf,
  TEXT_MAX_CHARACTERS,
  updatedMessageBody,
} from './message-text.ts';

const Timestamp = z.lazy(() =>
  z
    .string()
    .regex(/^\d+\.\d+$/, 'the ts of a Slack message')
    .describe('the ts of the message'),
);
const Text = z.lazy(() =>
  z
    .string()
    .min(1)
    .max(TEXT_MAX_CHARACTERS)
    .refine(fitsIntoMessage, 'too long for one Slack message, which counts line breaks and quotes twice; shorten it')
    .describe('the text of the message'),
);

/** Part of the target, which evidence shows, so free text is not allowed. */
const Channel = z.lazy(() =>
  z
    .string()
    .regex(/^#?[\p{L}\p{N}._-]{1,80}$/u, 'a channel: its id, or # and its name')
    .describe('the channel: its id, or # and its name'),
);
const PostInput = z.lazy(() =>
  z.strictObject({
    channel: Channel,
    text: Text,
    markdown: Markdown,
    threadTs: Timestamp.optional().describe('for a reply: the ts of the first message of the thread'),
  }),
);

const MessageOutput = z.lazy(() =>
  z.strictObject({ channel: z.string().describe('the id of the channel'), ts: Timestamp }),
);

/** Part of the write key: the same text as mrkdwn is a different write. */
const contentOf = ({ text, markdown }: MessageContent) => ({ text, ...(markdown && { markdown }) });

export const postMessage = operation({
  tool: 'slack.message.post',
  summary: 'Posts a message to a channel or a thread.',
  effect: 'probe',
  risk: 'low',
  reversible: false,
  connection: 'slack',
  input: PostInput,
  output: MessageOutput,
  content: ['text'],
  fixed: ['threadTs'],
  returnsOnlyIds: true,
  markdownField: 'text',
  propose: ({ channel, threadTs, ...content }, instance) => ({
    target: `slack:${channel}`,
    fields: { ...contentOf(content), ...(threadTs !== undefined && { threadTs }) },
    key: writeKey(['slack', 'post', instance, channel, threadTs ?? ''], contentOf(content)),
  }),
  async perform({ channel, threadTs, ...content }, { access, mark }) {
    const message = { channel, ...newMessageBody(content), ...(threadTs && { thread_ts: threadTs }) };
    return posted(await postMarked(access, { eventType: 'countersign_write', mark }, message));
  },
  async probe({ channel, threadTs }, { access, mark, openSince }) {
    const where = { channel, threadTs, since: openSince };
    const found = await findMarked(access, { eventType: 'countersign_write', mark }, where);
    if (found.kind === 'undecided') throw new OutcomeUnknown(found.why);
    return found.kind === 'found' ? { ...posted(found), recovered: true } : undefined;
  },
});

const posted = ({ channel, ts }: PostedMessage) => ({
  output: { channel, ts },
  reversal: { irreversible: 'people may have read the message; post a correction' },
  response: { ts },
});

const Updated = z.lazy(() =>
  z.object({ ok: z.literal(true), channel: z.string(), ts: z.string(), message: MessageBody }),
);

const UpdateInput = z.lazy(() =>
  z.strictObject({
    channel: Channel,
    ts: Timestamp,
    text: Text,
    markdown: Markdown,
    threadTs: Timestamp.optional().describe('for a reply: the ts of the first message of the thread'),
  }),
);
type UpdateInput = z.infer<typeof UpdateInput>;

export const updateMessage = operation({
  tool: 'slack.message.update',
  summary: 'Replaces the text of a message that the app has posted.',
  effect: 'natural',
  risk: 'low',
  reversible: true,
  connection: 'slack',
  input: UpdateInput,
  output: MessageOutput,
  content: ['text'],
  returnsOnlyIds: true,
  markdownField: 'text',
  propose: ({ channel, ts, text, markdown }, instance) => ({
    target: `slack:${channel}:${ts}`,
    fields: contentOf({ text, markdown }),
    // Slack stores mrkdwn in another form than it was sent: a URL becomes a link.
    ...(!markdown && { after: { text } }),
    key: writeKey(['slack', 'update', instance, channel, ts], contentOf({ text, markdown })),
  }),
  before: readMessage,
  async perform(input, { access, before: found, first }) {
    const { ts } = input;
    const channel = await listedChannel(access, input.channel);
    const updated = await slack(access, {
      method: 'POST',
      api: 'chat.update',
      body: { channel, ts, ...updatedMessageBody(input) },
      responseSchema: Updated,
    });
    const stored = stateOf(updated.message);
    const before = found && isAs(stored, found) ? (first ?? found) : found;
    return {
      output: { channel: updated.channel, ts: updated.ts },
      ...(before && { before }),
      reversal: reversalOf(input, before, stored),
      response: { ts: updated.ts },
    };
  },
});

/** `stored` is the updated message as Slack stores it. */
function reversalOf(input: UpdateInput, before: TouchedState | undefined, stored: TouchedState): Reversal {
  if (!before) return { irreversible: 'the message before the write could not be read' };
  if (before.blocks) return { irreversible: 'the message had a layout that cannot be restored from its text' };
  const { markdown: _written, ...where } = input;
  return { tool: 'slack.message.update', input: { ...where, ...before }, expects: stored };
}

async function readMessage({ channel, ts, threadTs }: UpdateInput, access: Access) {
  const query = `latest=${ts}&oldest=${ts}&inclusive=true`;
  const channelId = await listedChannel(access, channel);
  for await (const message of messagesIn(access, { channelId, threadTs, query })) {
    if (message.ts === ts) return stateOf(message);
  }
  throw new TargetRefused('Slack has no such message: check channel, ts and, for a reply, threadTs', {
    retryable: false,
  });
}

async function listedChannel(access: Access, channel: string): Promise<string> {
  const id = await findChannel(access, channel);
  if (!id) throw new TargetRefused(CHANNEL_NOT_FOUND, { retryable: false });
  return id;
}
