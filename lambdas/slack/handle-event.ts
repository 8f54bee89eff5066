import * as z from 'zod';
import { unescaped } from '../connectors/slack/message-text.ts';
import { type HttpEvent, type HttpResponse, json, Problem, signedBody } from '../entry/http.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import { type SlackEndpoint, signedBy, tenantOfRequest } from './request/signed-request.ts';
import { receiveMessage, type Threads } from './thread/receive-message.ts';
import type { ThreadMessage } from './thread/thread-runs.ts';

const UrlVerification = z.object({ type: z.literal('url_verification'), challenge: z.string().max(1_000) });
const Team = z.object({ team_id: z.string() });
const Id = z.string().regex(/^[A-Z0-9]{1,40}$/);
const Timestamp = z.string().regex(/^\d{1,12}\.\d{1,9}$/);
const TEXT_MAX_CHARACTERS = 10_000;
const MENTION = /<@[A-Z0-9]+(?:\|[^>]*)?>/g;

/** What a person writes. Messages of bots, ours too, have a `bot_id`; edits, deletions and joins have another `subtype`. */
const PersonalMessage = z.object({
  type: z.literal('event_callback'),
  event: z.object({
    type: z.enum(['app_mention', 'message']),
    user: Id,
    /** Of a guest from another organization. */
    user_team: Id.optional(),
    bot_id: z.undefined().optional(),
    bot_profile: z.undefined().optional(),
    subtype: z.enum(['file_share', 'thread_broadcast']).optional(),
    text: z.string().max(100_000),
    channel: Id,
    channel_type: z.string().optional(),
    ts: Timestamp,
    thread_ts: Timestamp.optional(),
  }),
  authorizations: z.array(z.object({ user_id: z.string().optional() })).default([]),
});

export type Events = SlackEndpoint & Threads;

/** Responds to Slack's URL verification, and receives messages to the app. Other events are acknowledged and not used. */
export async function handleEvent(slack: Events, event: HttpEvent): Promise<HttpResponse> {
  const body = tryParseJson(signedBody(event).toString('utf8'));
  const check = UrlVerification.safeParse(body);
  if (check.success) {
    // The URL verification names no workspace, so the secret of any tenant is accepted; the response contains no tenant data.
    const signers = await signedBy(slack, event, slack.teams.tenants);
    if (signers.length > 0) return json(200, { challenge: check.data.challenge });
    throw new Problem(401, 'UNAUTHORIZED', 'the signature does not match this workspace, body and time');
  }
  const team = Team.safeParse(body).data?.team_id;
  const tenant = await tenantOfRequest(slack, event, team);
  const message = team === undefined ? undefined : messageOf(tenant, team, body);
  if (message) {
    const received = await receiveMessage(slack, message);
    slack.log.info('a message in Slack was received', { tenant, channel: message.channel, ts: message.ts, received });
    if (received === 'again')
      throw new Problem(503, 'INTERNAL', 'the message has had no effect yet; send the event again');
  }
  return { statusCode: 200, body: '' };
}

/** The message of a person; undefined for everything else, so that the app never answers itself. */
function messageOf(tenant: string, team: string, body: unknown): ThreadMessage | undefined {
  const parsed = PersonalMessage.safeParse(body);
  if (!parsed.success) return undefined;
  const { type, user, user_team, text, channel, channel_type, ts, thread_ts } = parsed.data.event;
  const own = parsed.data.authorizations.flatMap(({ user_id }) => user_id ?? []);
  if (own.includes(user)) return undefined;
  return {
    ...{ tenant, team, channel, ts, threadTs: thread_ts ?? ts, text: plainText(text) },
    identity: `slack:${user_team ?? team}/${user}`,
    addressed: type === 'app_mention' || channel_type === 'im',
  };
}

/** Without mentions, as the person typed it. */
const plainText = (text: string): string =>
  unescaped(text.replaceAll(MENTION, '')).trim().slice(0, TEXT_MAX_CHARACTERS).toWellFormed();
