import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import type { Access } from './connector.ts';
import { exchange, OutcomeUnknown, RATE_LIMIT_PAUSE_MS, TargetRefused, urlAt } from './http-exchange.ts';
import { MessageBody } from './slack-text.ts';

const PAGE_SIZE = 200;
const CHANNEL_ID = /^[CDG][A-Z0-9]{5,}$/;
export const NOT_LISTED = 'Slack lists no such channel to the bot: invite it, or name the channel by its id';

const Credential = z.object({ botToken: z.string() });
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
  const credential = Credential.safeParse(access.credential);
  if (!credential.success) throw new CountersignError('CONNECTION_MISSING', 'the slack credential needs "botToken"');
  const { answer: given } = await exchange({
    ...rest,
    system: 'Slack',
    url: urlAt(access.baseUrl, `/api/${api}`),
    headers: { authorization: `Bearer ${credential.data.botToken}` },
    answer: z.union([Refusal, answer]),
  });
  if (!given.ok) throw refused(given.error, call.method);
  return given;
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

/** Messages are posted to a name or an id, but read and changed only by id. */
export async function findChannel(access: Access, channel: string): Promise<string | undefined> {
  if (CHANNEL_ID.test(channel)) return channel;
  const name = channel.replace(/^#/, '');
  const api = 'conversations.list?types=public_channel,private_channel&exclude_archived=true';
  for await (const page of pages(access, api, Channels)) {
    const found = page.channels.find((each) => each.name === name);
    if (found) return found.id;
  }
  return undefined;
}

async function* pages<Page extends { ok: true; response_metadata?: { next_cursor: string } }>(
  access: Access,
  api: string,
  answer: z.ZodType<Page>,
): AsyncGenerator<Page> {
  for (let cursor: string | undefined; cursor !== ''; ) {
    const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
    const page = await slack(access, { method: 'GET', api: `${api}&limit=${PAGE_SIZE}${next}`, answer });
    yield page;
    cursor = page.response_metadata?.next_cursor ?? '';
  }
}

/** Slack's own words for "later, please". */
const PASSING_ERRORS = ['ratelimited', 'rate_limited', 'service_unavailable', 'team_added_to_org', 'request_timeout'];
/** Of these Slack says that part of the operation may have succeeded. */
const OPEN_ERRORS = ['internal_error', 'fatal_error'];
/** Words that a message of ours may repeat; any other may be anything. */
const FINAL_ERRORS = [
  'account_inactive',
  'cant_update_message',
  'channel_not_found',
  'edit_window_closed',
  'invalid_auth',
  'is_archived',
  'message_not_found',
  'missing_scope',
  'msg_too_long',
  'no_permission',
  'not_authed',
  'not_in_channel',
  'restricted_action',
  'thread_not_found',
  'token_expired',
  'token_revoked',
];

function refused(error: string, method: 'GET' | 'POST'): CountersignError {
  const open = OPEN_ERRORS.includes(error);
  const passing = PASSING_ERRORS.includes(error);
  const word = open || passing || FINAL_ERRORS.includes(error) ? error : 'an error not known here';
  if (open && method === 'POST') return new OutcomeUnknown(`Slack failed (${word})`);
  return new TargetRefused(`Slack refused (${word})`, {
    retryable: open || passing,
    ...(passing && { retryAfterMs: RATE_LIMIT_PAUSE_MS }),
  });
}
