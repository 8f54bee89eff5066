import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import { type Access, operation, writeKey } from './connector.ts';
import { exchange, OutcomeUnknown, TargetRefused } from './http-exchange.ts';

const TEXT_MAX_CHARACTERS = 4000;
const MARK_EVENT_TYPE = 'countersign_write';
const PAGE_SIZE = 200;
const CHANNEL_ID = /^[CDG][A-Z0-9]{5,}$/;
/** Slack's clock and ours may differ; looking a little further back costs nothing. */
const CLOCK_SKEW_SECONDS = 60;

const Credential = z.object({ botToken: z.string() });
const Posted = z.union([
  z.object({ ok: z.literal(true), channel: z.string(), ts: z.string() }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);
const More = z.object({ next_cursor: z.string() }).optional();
const History = z.object({
  ok: z.literal(true),
  messages: z.array(
    z.object({
      ts: z.string(),
      metadata: z.object({ event_type: z.string(), event_payload: z.record(z.string(), z.unknown()) }).optional(),
    }),
  ),
  response_metadata: More,
});
const Channels = z.object({
  ok: z.literal(true),
  channels: z.array(z.object({ id: z.string(), name: z.string() })),
  response_metadata: More,
});

const PostInput = z.strictObject({
  channel: z.string().min(1),
  text: z.string().min(1).max(TEXT_MAX_CHARACTERS),
  threadTs: z.string().optional(),
});

export const postMessage = operation({
  tool: 'slack.message.post',
  effect: 'probe',
  connection: 'slack',
  input: PostInput,
  propose: ({ channel, text, threadTs }) => ({
    target: `slack:${channel}`,
    fields: { text },
    key: writeKey(['slack', 'post', channel, threadTs ?? ''], { text }),
  }),
  async perform({ channel, text, threadTs }, { access, mark }) {
    const { answer } = await exchange({
      ...request(access, 'POST', 'chat.postMessage'),
      body: {
        channel,
        text,
        ...(threadTs && { thread_ts: threadTs }),
        metadata: { event_type: MARK_EVENT_TYPE, event_payload: { mark } },
      },
      answer: Posted,
    });
    if (!answer.ok) throw refused(answer.error);
    return { output: { channel: answer.channel, ts: answer.ts }, reversal: SEEN, response: { ts: answer.ts } };
  },
  async probe({ channel, threadTs }, { access, mark, openSince }) {
    const id = await channelId(access, channel);
    const oldest = Math.floor(Date.parse(openSince) / 1000) - CLOCK_SKEW_SECONDS;
    const about = `channel=${id}&include_all_metadata=true&oldest=${oldest}`;
    const method = threadTs ? `conversations.replies?ts=${threadTs}&${about}` : `conversations.history?${about}`;
    for await (const page of pages(access, method, History)) {
      const ours = page.messages.find(({ metadata }) => metadata?.event_payload.mark === mark);
      if (ours)
        return { output: { channel: id, ts: ours.ts }, reversal: SEEN, response: { ts: ours.ts }, recovered: true };
    }
    return undefined;
  },
});

/** Messages are posted to a name or an id, but read only by id. A name that is not listed settles nothing. */
async function channelId(access: Access, channel: string): Promise<string> {
  if (CHANNEL_ID.test(channel)) return channel;
  const name = channel.replace(/^#/, '');
  const method = 'conversations.list?types=public_channel,private_channel&exclude_archived=true';
  for await (const page of pages(access, method, Channels)) {
    const found = page.channels.find((each) => each.name === name);
    if (found) return found.id;
  }
  throw new OutcomeUnknown(`Slack lists no channel ${channel} to look for the message in`);
}

async function* pages<Page extends { response_metadata?: { next_cursor: string } }>(
  access: Access,
  method: string,
  answer: z.ZodType<Page>,
): AsyncGenerator<Page> {
  for (let cursor: string | undefined; cursor !== ''; ) {
    const url = `${method}&limit=${PAGE_SIZE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`;
    const either = z.union([z.object({ ok: z.literal(false), error: z.string() }), answer]);
    const { answer: page } = await exchange({ ...request(access, 'GET', url), answer: either });
    if ('error' in page) throw refused(page.error);
    yield page;
    cursor = page.response_metadata?.next_cursor ?? '';
  }
}

const SEEN = { irreversible: 'a posted message may have been read; post a correction' };

/** Slack's own words for "later, please"; all its other refusals stay refusals. */
const PASSING_ERRORS = new Set(['ratelimited', 'service_unavailable', 'team_added_to_org']);

function refused(error: string): TargetRefused {
  return new TargetRefused(`Slack refused (${error.slice(0, 60)})`, { retryable: PASSING_ERRORS.has(error) });
}

function request<Method extends 'GET' | 'POST'>({ baseUrl, credential }: Access, method: Method, api: string) {
  const parsed = Credential.safeParse(credential);
  if (!parsed.success) throw new CountersignError('CONNECTION_MISSING', 'the slack credential needs "botToken"');
  return {
    system: 'Slack',
    method,
    url: `${baseUrl}/api/${api}`,
    headers: { authorization: `Bearer ${parsed.data.botToken}` },
  };
}
