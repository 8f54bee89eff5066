import * as z from 'zod';
import { isAs, type Reversal, type TouchedState } from '../../run/receipt.ts';
import { type Access, Markdown, operation, writeKey } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../exchange.ts';
import { findChannel, messagesIn, NOT_LISTED, slack } from './client.ts';
import {
  fitsIntoMessage,
  MessageBody,
  postedContent,
  stateOf,
  TEXT_MAX_CHARACTERS,
  updatedContent,
  type Wording,
} from './message-text.ts';

const MARK_EVENT_TYPE = 'countersign_write';
const MARKS_HIDDEN =
  'Slack hides the metadata of messages, by which this one would be found: give the app the scope metadata.message:read';
/** Slack's clock and ours may differ; looking a little further back costs nothing. */
const CLOCK_SKEW_SECONDS = 60;

const Posted = z.object({ ok: z.literal(true), channel: z.string(), ts: z.string() });
const Timestamp = z.string().regex(/^\d+\.\d+$/, 'the ts of a Slack message');
const Text = z
  .string()
  .min(1)
  .max(TEXT_MAX_CHARACTERS)
  .refine(fitsIntoMessage, 'too long for one Slack message, which counts line breaks and quotes twice; shorten it');

/** Part of the target, which evidence shows: a name, no text. */
const Channel = z.string().regex(/^#?[\p{L}\p{N}._-]{1,80}$/u, 'a channel: its id, or # and its name');
const PostInput = z.strictObject({
  channel: Channel,
  text: Text,
  markdown: Markdown,
  threadTs: Timestamp.optional(),
});

/** By which a write is known: text of the same letters as mrkdwn is another. */
const wordingOf = ({ text, markdown }: Wording) => ({ text, ...(markdown && { markdown }) });

export const postMessage = operation({
  tool: 'slack.message.post',
  effect: 'probe',
  risk: 'low',
  reversible: false,
  connection: 'slack',
  input: PostInput,
  content: ['text'],
  fixed: ['threadTs'],
  answersWithIds: true,
  markdownField: 'text',
  propose: ({ channel, threadTs, ...wording }, instance) => ({
    target: `slack:${channel}`,
    fields: { ...wordingOf(wording), ...(threadTs !== undefined && { threadTs }) },
    key: writeKey(['slack', 'post', instance, channel, threadTs ?? ''], wordingOf(wording)),
  }),
  async perform({ channel, threadTs, ...wording }, { access, mark }) {
    const posted = await slack(access, {
      method: 'POST',
      api: 'chat.postMessage',
      body: {
        channel,
        ...postedContent(wording),
        ...(threadTs && { thread_ts: threadTs }),
        metadata: { event_type: MARK_EVENT_TYPE, event_payload: { mark } },
      },
      answer: Posted,
    });
    return { output: { channel: posted.channel, ts: posted.ts }, reversal: SEEN, response: { ts: posted.ts } };
  },
  async probe({ channel, threadTs }, { access, mark, openSince }) {
    const id = await findChannel(access, channel);
    // That it is not listed says nothing about what was posted there.
    if (!id) throw new OutcomeUnknown(NOT_LISTED);
    const oldest = Math.floor(Date.parse(openSince) / 1000) - CLOCK_SKEW_SECONDS;
    const query = `include_all_metadata=true&oldest=${oldest}`;
    for await (const { ts, metadata } of messagesIn(access, { channelId: id, threadTs, query })) {
      // A message of ours whose mark is hidden may be the one: that there is no other mark says nothing.
      if (metadata?.event_type === MARK_EVENT_TYPE && !metadata.event_payload) throw new OutcomeUnknown(MARKS_HIDDEN);
      if (metadata?.event_payload?.mark !== mark) continue;
      return { output: { channel: id, ts }, reversal: SEEN, response: { ts }, recovered: true };
    }
    return undefined;
  },
});

const SEEN = { irreversible: 'a posted message may have been read; post a correction' };

const Updated = z.object({ ok: z.literal(true), channel: z.string(), ts: z.string(), message: MessageBody });

const UpdateInput = z.strictObject({
  channel: Channel,
  ts: Timestamp,
  text: Text,
  markdown: Markdown,
  /** Of a reply: the message that began its thread. */
  threadTs: Timestamp.optional(),
});
type UpdateInput = z.infer<typeof UpdateInput>;

export const updateMessage = operation({
  tool: 'slack.message.update',
  effect: 'natural',
  risk: 'low',
  reversible: true,
  connection: 'slack',
  input: UpdateInput,
  content: ['text'],
  answersWithIds: true,
  markdownField: 'text',
  propose: ({ channel, ts, text, markdown }, instance) => ({
    target: `slack:${channel}:${ts}`,
    fields: wordingOf({ text, markdown }),
    // What Slack makes of mrkdwn is not letter for letter what it was sent: a URL, for one, becomes a link.
    ...(!markdown && { after: { text } }),
    key: writeKey(['slack', 'update', instance, channel, ts], wordingOf({ text, markdown })),
  }),
  before: readMessage,
  async perform(input, { access, before: found, first }) {
    const { ts } = input;
    const channel = await listedChannel(access, input.channel);
    const updated = await slack(access, {
      method: 'POST',
      api: 'chat.update',
      body: { channel, ts, ...updatedContent(input) },
      answer: Updated,
    });
    const left = stateOf(updated.message);
    const before = found && isAs(left, found) ? (first ?? found) : found;
    return {
      output: { channel: updated.channel, ts: updated.ts },
      ...(before && { before }),
      reversal: putBack(input, before, left),
      response: { ts: updated.ts },
    };
  },
});

/** `left` is the message as Slack keeps it. */
function putBack(input: UpdateInput, before: TouchedState | undefined, left: TouchedState): Reversal {
  if (!before) return { irreversible: 'the message before the write could not be read' };
  if (before.blocks) return { irreversible: 'the message had a layout, which its text does not hold' };
  const { markdown: _written, ...where } = input;
  return { tool: 'slack.message.update', input: { ...where, ...before }, expects: left };
}

async function readMessage({ channel, ts, threadTs }: UpdateInput, access: Access) {
  const query = `latest=${ts}&oldest=${ts}&inclusive=true`;
  const channelId = await listedChannel(access, channel);
  for await (const message of messagesIn(access, { channelId, threadTs, query })) {
    if (message.ts === ts) return stateOf(message);
  }
  throw new TargetRefused('Slack shows no such message: check channel, ts and, for a reply, threadTs', {
    retryable: false,
  });
}

async function listedChannel(access: Access, channel: string): Promise<string> {
  const id = await findChannel(access, channel);
  if (!id) throw new TargetRefused(NOT_LISTED, { retryable: false });
  return id;
}
