import * as z from 'zod';
import { CountersignError } from '../../run/errors.ts';
import { type Access, credentialOf } from '../connector.ts';
import { exchange, urlAt } from '../exchange.ts';
import { TargetRefused } from '../target-errors.ts';
import { slackError } from './errors.ts';
import { MessageBody } from './message-text.ts';

const PAGE_SIZE = 200;
/** Slack's maximum: finding a channel by name takes one request per 999 channels. */
const CHANNELS_PAGE_SIZE = 999;
/** Slack allows 50 such requests a minute. */
const CHANNEL_PAGES_MAX = 20;
const CHANNEL_ID = /^[CDG][A-Z0-9]{5,}$/;
export const CHANNEL_NOT_FOUND =
  'the app is not in a channel with this name: invite it, or use the id of the channel (C…)';
const TOO_MANY_CHANNELS = `the app is in more than ${CHANNELS_PAGE_SIZE * CHANNEL_PAGES_MAX} channels: use the id of the channel (C…)`;

const Credential = z.lazy(() => z.object({ botToken: z.string(), refreshToken: z.string().optional() }));
/** Token rotation is not supported: each new token would have to be stored, and no function may write credentials. */
const ROTATING =
  'the slack credential belongs to an app with token rotation (xoxe), whose tokens expire after 12 hours; use the bot token (xoxb-) of an app without token rotation';
const APP_LEVEL = 'the slack credential has an app-level token (xapp-); use the bot token (xoxb-) of the app';
const Refusal = z.lazy(() => z.object({ ok: z.literal(false), error: z.string() }));
const More = { response_metadata: z.object({ next_cursor: z.string() }).optional() };

const Messages = z.lazy(() =>
  z.object({
    ok: z.literal(true),
    messages: z.array(
      MessageBody.extend({
        ts: z.string(),
        // Without include_all_metadata Slack returns only the event type.
        metadata: z
          .object({ event_type: z.string(), event_payload: z.record(z.string(), z.unknown()).optional() })
          .optional(),
      }),
    ),
    ...More,
  }),
);
export type Message = z.infer<typeof Messages>['messages'][number];

const Channels = z.lazy(() =>
  z.object({
    ok: z.literal(true),
    channels: z.array(z.object({ id: z.string(), name: z.string() })),
    ...More,
  }),
);

interface Call<Body> {
  method: 'GET' | 'POST';
  /** `chat.postMessage`, with the query of a GET. */
  api: string;
  body?: unknown;
  responseSchema: z.ZodType<Body>;
}

/** Makes one call to the Web API, which reports errors with status 200. */
export async function slack<Body extends { ok: true }>(access: Access, call: Call<Body>): Promise<Body> {
  const { api, responseSchema, ...rest } = call;
  const botToken = botTokenOf(access);
  const { body } = await exchange({
    ...rest,
    system: 'Slack',
    url: urlAt(access.baseUrl, `/api/${api}`),
    headers: { authorization: `Bearer ${botToken}` },
    responseSchema: z.union([Refusal, responseSchema]),
  });
  if (!body.ok) throw slackError(body.error, call.method);
  return body;
}

/** The bot token; throws CONNECTION_MISSING if the credential has another form. */
export function botTokenOf(access: Pick<Access, 'credential'>): string {
  const { botToken, refreshToken } = credentialOf(access, Credential, 'the slack credential needs "botToken"');
  if (botToken.startsWith('xoxe') || refreshToken !== undefined) {
    throw new CountersignError('CONNECTION_MISSING', ROTATING);
  }
  if (botToken.startsWith('xapp-')) throw new CountersignError('CONNECTION_MISSING', APP_LEVEL);
  return botToken;
}

/** The messages of a channel, or of one thread in it. */
export async function* messagesIn(
  access: Access,
  { channelId, threadTs, query }: { channelId: string; threadTs?: string; query: string },
): AsyncGenerator<Message> {
  const where = `channel=${channelId}&${query}`;
  const api = threadTs ? `conversations.replies?ts=${threadTs}&${where}` : `conversations.history?${where}`;
  for await (const page of pages(access, api, Messages)) yield* page.messages;
}

/** Channel ids by name, cached as long as the connection: `before` and `perform` of a step need the same id. */
const knownChannels = new WeakMap<object, Map<string, string>>();

/**
 * The id of a channel: Slack posts to a name or an id, but reads and updates only by id. Searches only the channels that
 * the app is in: it cannot read others, and a large workspace has too many for Slack's rate limit.
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
  responseSchema: z.ZodType<Page>,
  pageSize = PAGE_SIZE,
): AsyncGenerator<Page> {
  for (let cursor: string | undefined; cursor !== ''; ) {
    const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
    const page = await slack(access, { method: 'GET', api: `${api}&limit=${pageSize}${next}`, responseSchema });
    yield page;
    cursor = page.response_metadata?.next_cursor ?? '';
  }
}
