import * as z from 'zod';
import type { Access } from '../connector.ts';
import { CHANNEL_NOT_FOUND, findChannel, messagesIn, slack } from './client.ts';

const Posted = z.lazy(() => z.object({ ok: z.literal(true), channel: z.string(), ts: z.string() }));
const MARKS_HIDDEN =
  'Slack hides the metadata of messages, so the message cannot be found: give the app the scope metadata.message:read';
/** Allows for a difference between Slack's clock and the local one. */
const CLOCK_SKEW_SECONDS = 60;

/** Identifies a message in its metadata, so that a message whose response was lost can be found again. */
export interface Mark {
  eventType: 'countersign_write' | 'countersign_approval' | 'countersign_digest' | 'countersign_notice';
  mark: string;
}

export interface PostedMessage {
  channel: string;
  ts: string;
}

export async function postMarked(access: Access, { eventType, mark }: Mark, message: object): Promise<PostedMessage> {
  const metadata = { event_type: eventType, event_payload: { mark } };
  const body = { ...message, metadata };
  const { channel, ts } = await slack(access, {
    method: 'POST',
    api: 'chat.postMessage',
    body,
    responseSchema: Posted,
  });
  return { channel, ts };
}

const Permalink = z.lazy(() => z.object({ ok: z.literal(true), permalink: z.url({ protocol: /^https?$/ }) }));

/** The address of a message in Slack's clients. */
export async function permalinkOf(access: Access, { channel, ts }: PostedMessage): Promise<string> {
  const api = `chat.getPermalink?channel=${encodeURIComponent(channel)}&message_ts=${encodeURIComponent(ts)}`;
  return (await slack(access, { method: 'GET', api, responseSchema: Permalink })).permalink;
}

export type FoundMessage =
  | ({ kind: 'found' } & PostedMessage)
  | { kind: 'absent' }
  /** Slack does not show whether the message exists. */
  | { kind: 'undecided'; why: string };

/** Finds a marked message in a channel, or in one thread of it, that was posted at `since` or later. */
export async function findMarked(
  access: Access,
  { eventType, mark }: Mark,
  where: { channel: string; threadTs?: string; since: string },
): Promise<FoundMessage> {
  const channel = await findChannel(access, where.channel);
  if (channel === undefined) return { kind: 'undecided', why: CHANNEL_NOT_FOUND };
  const oldest = Math.floor(Date.parse(where.since) / 1000) - CLOCK_SKEW_SECONDS;
  const query = `include_all_metadata=true&oldest=${oldest}`;
  let marksHidden = false;
  for await (const { ts, metadata } of messagesIn(access, { channelId: channel, threadTs: where.threadTs, query })) {
    if (metadata?.event_payload?.mark === mark) return { kind: 'found', channel, ts };
    // A message with a hidden mark may be this one.
    marksHidden ||= metadata?.event_type === eventType && !metadata.event_payload;
  }
  return marksHidden ? { kind: 'undecided', why: MARKS_HIDDEN } : { kind: 'absent' };
}
