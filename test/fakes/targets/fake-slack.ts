import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { FakeAnswer, FakeRequest } from './fake-targets.ts';

export interface SlackMessage {
  ts: string;
  /** As Slack stores it: a `&`, `<` or `>` that is not mrkdwn is an entity. */
  text: string;
  blocks?: unknown;
  thread_ts?: string;
  metadata?: unknown;
}

/** The parts of Slack that the connector uses. A post accepts the name of a channel, other calls only its id. */
export class FakeSlack {
  /** By name, `#incidents`. */
  readonly channels = new Map<string, SlackMessage[]>();
  #messages = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  answer({ url, parts: [, method], body = {} }: FakeRequest): FakeAnswer {
    if (method === 'chat.postMessage') return this.#post(body);
    if (method === 'chat.update') return this.#update(body);
    if (method === 'conversations.open') return this.#openDirect(String(body.users));
    if (method === 'conversations.list' || method === 'users.conversations') {
      return ok({ channels: [...this.channels.keys()].map((name) => ({ id: slackId(name), name: name.slice(1) })) });
    }
    const channel = url.searchParams.get('channel');
    const messages = this.#inChannel(channel);
    if (!messages) return refused('channel_not_found');
    if (method === 'chat.getPermalink') {
      const { ts } = messages.find((each) => each.ts === url.searchParams.get('message_ts')) ?? {};
      if (ts === undefined) return refused('message_not_found');
      return ok({ channel, permalink: `https://acme.slack.com/archives/${channel}/p${ts.replace('.', '')}` });
    }
    const inclusive = url.searchParams.get('inclusive') === 'true';
    const oldest = url.searchParams.get('oldest') ?? '';
    const latest = url.searchParams.get('latest') ?? '~';
    const thread = url.searchParams.get('ts') ?? undefined;
    const inTime = (ts: string) => (ts > oldest && ts < latest) || (inclusive && (ts === oldest || ts === latest));
    const inThread = ({ ts, thread_ts }: SlackMessage) =>
      thread === undefined ? !thread_ts : [ts, thread_ts].includes(thread);
    const all = url.searchParams.get('include_all_metadata') === 'true';
    const shown = messages.filter((message) => inTime(message.ts) && inThread(message));
    return ok({ messages: shown.map((message) => ({ ...message, ...typeAlone(message, all) })) });
  }

  #inChannel(id: unknown): SlackMessage[] | undefined {
    return [...this.channels].find(([name]) => slackId(name) === id)?.[1];
  }

  #post({ channel, text, blocks, metadata, thread_ts }: Record<string, unknown>): FakeAnswer {
    const name = [...this.channels.keys()].find((each) => each === channel || slackId(each) === channel);
    if (name === undefined) return refused('channel_not_found');
    this.#messages += 1;
    const ts = `${Math.floor(this.#clock.now() / 1000)}.${String(this.#messages).padStart(6, '0')}`;
    const inThread = thread_ts !== undefined && { thread_ts: String(thread_ts) };
    this.channels.get(name)?.push({ ts, text: String(text), blocks, metadata, ...inThread });
    return ok({ channel: slackId(name), ts });
  }

  /** The direct messages of a person are in the channel `@USER`. */
  #openDirect(user: string): FakeAnswer {
    if (user === NO_USER) return refused('user_not_found');
    const name = `@${user}`;
    if (!this.channels.has(name)) this.channels.set(name, []);
    return ok({ channel: { id: slackId(name) } });
  }

  /** Text without blocks removes the blocks. */
  #update({ channel, ts, text, blocks }: Record<string, unknown>): FakeAnswer {
    const message = this.#inChannel(channel)?.find((each) => each.ts === ts);
    if (!message) return refused('message_not_found');
    message.text = String(text);
    message.blocks = blocks;
    return ok({ channel, ts, text: message.text, message });
  }
}

/** A user who has left the workspace. */
export const NO_USER = 'U0GONE';

const ok = (body: object): FakeAnswer => ({ status: 200, body: { ok: true, ...body } });
const refused = (error: string): FakeAnswer => ({ status: 200, body: { ok: false, error } });

/** Without `include_all_metadata` only the type is returned. */
function typeAlone({ metadata }: SlackMessage, all: boolean): { metadata?: unknown } {
  if (all || metadata === undefined) return {};
  const { event_type } = metadata as { event_type: string };
  return { metadata: { event_type } };
}

const slackId = (name: string) => `C0${name.slice(1).toUpperCase()}`;
