import * as z from 'zod';
import { CountersignError } from '../../run/errors.ts';
import type { Access } from '../connector.ts';
import { exchange, TargetRefused, urlAt } from '../exchange.ts';
import { slackRefusal } from './errors.ts';
import { MessageBody } from './message-text.ts';

const PAGE_SIZE = 200;
/** Slack takes no more. A lookup of a name costs one request for each so many channels. */
const CHANNELS_PAGE_SIZE = 999;
/** Slack allows 50 such requests a minute; an app in more channels than these pages hold needs the id. */
const CHANNEL_PAGES_MAX = 20;
const CHANNEL_ID = /^[CDG][A-Z0-9]{5,}$/;
export const NOT_LISTED = 'the app is in no channel of this name: invite it, or name the channel by its id (C…)';
const TOO_MANY_CHANNELS = `the app is in more than ${CHANNELS_PAGE_SIZE * CHANNEL_PAGES_MAX} channels: name the channel by its id (C…)`;

const Credential = z.object({ botToken: z.string(), refreshToken: z.string().optional() });
/** Such a token lives for twelve hours, and its successor would have to be stored: no function may write credentials. */
const ROTATING =
  'the slack credential is of an app with token rotation (xoxe), whose tokens expire after 12 hours; use the bot token (xoxb-) of an app without token rotation';
const APP_LEVEL = 'the slack credential has an app-level token (xapp-); use the bot token (xoxb-) of the app';
const Refusal = z.object({ ok: z.literal(false), error: z.string() });
const More = { response_metadata: z.object({ next_cursor: z.string() }).optional() };

const Messages = z.object({
  ok: z.literal(true),
  messages: z.array(
    MessageBody.extend({
      ts: z.string(),
      // Whoever does not ask for all metadata is told its type alone.
      metadata: z
        .object({ event_type: z.string(), event_payload: z.record(z.string(), z.unknown()).optional() })
        .optional(),
    }),
  ),
  ...More,
});
export type Message = z.infer<typeof Messages>['messages'][number];

const Channels = z.object({
  ok: z.literal(true),
  channels: z.array(z.object({ id: z.string(), name: z.string() })),
  ...More,
});

interface Call<Answer> {
  method: 'GET' | 'POST';
  /** `chat.postMessage`, with a query where it reads. */
  api: string;
  body?: unknown;
  answer: z.ZodType<Answer>;
}

/** One call of the Web API, which says no with status 200. */
export async function slack<Answer extends { ok: true }>(access: Access, call: Call<Answer>): Promise<Answer> {
  const { api, answer, ...rest } = call;
  const botToken = botTokenOf(access);
  const { answer: given } = await exchange({
    ...rest,
    system: 'Slack',
    url: urlAt(access.baseUrl, `/api/${api}`),
    headers: { authorization: `Bearer ${botToken}` },
    answer: z.union([Refusal, answer]),
  });
  if (!given.ok) throw slackRefusal(given.error, call.method);
  return given;
}

function botTokenOf({ credential }: Access): string {
  const { data } = Credential.safeParse(credential);
  if (!data) throw new CountersignError('CONNECTION_MISSING', 'the slack credential needs "botToken"');
  if (data.botToken.startsWith('xoxe') || data.refreshToken !== undefined) {
    throw new CountersignError('CONNECTION_MISSING', ROTATING);
  }
  if (data.botToken.startsWith('xapp-')) throw new CountersignError('CONNECTION_MISSING', APP_LEVEL);
  return data.botToken;
}

/** Messages of a channel, or of one thread in it. */
export async function* messagesIn(
  access: Access,
  { channelId, threadTs, query }: { channelId: string; threadTs?: string; query: string },
): AsyncGenerator<Message> {
  const where = `channel=${channelId}&${query}`;
  const api = threadTs ? `conversations.replies?ts=${threadTs}&${where}` : `conversations.history?${where}`;
  for await (const page of pages(access, api, Messages)) yield* page.messages;
}

/** Ids of channels by name, for as long as the connection is cached: `before` and `perform` of a step need the same one. */
const knownChannels = new WeakMap<object, Map<string, string>>();

/**
 * Messages are posted to a name or an id, but read and changed only by id. Of the channels only those are listed that the
 * app is in: it can read no others, and a large workspace has too many for Slack's rate limit.
 */
export async function findChannel(access: Access, channel: string): Promise<string | undefined> {
  if (CHANNEL_ID.test(channel)) return channel;
  const name = channel.replace(/^#/, '');
  const known = channelsOf(access);
  const at = `${access.baseUrl} ${name}`;
  const found = known.get(at) ?? (await lookUpChannel(access, name));
  if (found !== undefined) known.set(at, found);
  return found;
}

function channelsOf(access: Access): Map<string, string> {
  botTokenOf(access);
  const key = access.credential as object;
  const known = knownChannels.get(key) ?? new Map<string, string>();
  knownChannels.set(key, known);
  return known;
}

async function lookUpChannel(access: Access, name: string): Promise<string | undefined> {
  const api = 'users.conversations?types=public_channel,private_channel&exclude_archived=true';
  let read = 0;
  for await (const page of pages(access, api, Channels, CHANNELS_PAGE_SIZE)) {
    const found = page.channels.find((each) => each.name === name);
    if (found) return found.id;
    read += 1;
    if (read === CHANNEL_PAGES_MAX) throw new TargetRefused(TOO_MANY_CHANNELS, { retryable: false });
  }
  return undefined;
}

async function* pages<Page extends { ok: true; response_metadata?: { next_cursor: string } }>(
  access: Access,
  api: string,
  answer: z.ZodType<Page>,
  pageSize = PAGE_SIZE,
): AsyncGenerator<Page> {
  for (let cursor: string | undefined; cursor !== ''; ) {
    const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
    const page = await slack(access, { method: 'GET', api: `${api}&limit=${pageSize}${next}`, answer });
    yield page;
    cursor = page.response_metadata?.next_cursor ?? '';
  }
}
