import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import { type Access, operation, writeKey } from './connector.ts';
import { exchange, TargetRefused } from './http-exchange.ts';

const TEXT_MAX_CHARACTERS = 4000;
const MARK_EVENT_TYPE = 'countersign_write';
const HISTORY_PAGE = 200;
/** Slack's clock and ours may differ; looking a little further back costs nothing. */
const CLOCK_SKEW_SECONDS = 60;

const Credential = z.object({ botToken: z.string() });
const Posted = z.union([
  z.object({ ok: z.literal(true), channel: z.string(), ts: z.string() }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);
const History = z.union([
  z.object({
    ok: z.literal(true),
    messages: z.array(
      z.object({
        ts: z.string(),
        metadata: z.object({ event_type: z.string(), event_payload: z.record(z.string(), z.unknown()) }).optional(),
      }),
    ),
    response_metadata: z.object({ next_cursor: z.string() }).optional(),
  }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);

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
  async probe({ channel, threadTs }, { access, mark, intentAt }) {
    const oldest = Math.floor(Date.parse(intentAt) / 1000) - CLOCK_SKEW_SECONDS;
    for (let cursor = ''; ; ) {
      const method = threadTs ? `conversations.replies?ts=${threadTs}&` : 'conversations.history?';
      const query = `channel=${encodeURIComponent(channel)}&include_all_metadata=true&oldest=${oldest}&limit=${HISTORY_PAGE}`;
      const page = cursor && `&cursor=${encodeURIComponent(cursor)}`;
      const { answer } = await exchange({ ...request(access, 'GET', `${method}${query}${page}`), answer: History });
      // A channel nobody ever posted to does not hold our message either.
      if (!answer.ok && answer.error === 'channel_not_found') return undefined;
      if (!answer.ok) throw refused(answer.error);
      const ours = answer.messages.find(({ metadata }) => metadata?.event_payload.mark === mark);
      if (ours) {
        return { output: { channel, ts: ours.ts }, reversal: SEEN, response: { ts: ours.ts }, recovered: true };
      }
      cursor = answer.response_metadata?.next_cursor ?? '';
      if (!cursor) return undefined;
    }
  },
});

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
