import { type Collection, stableId } from '../store.ts';
import type { SystemContext } from '../system.ts';

export type Block = Record<string, unknown>;

export interface SlackTeam {
  id: string;
  domain: string;
}

export interface SlackUser {
  id: string;
  team: SlackTeam;
  name: string;
  real_name: string;
  email: string;
}

export interface SlackMessage {
  type: 'message';
  user: string;
  /** Absent for messages of people. */
  bot_id?: string;
  app_id?: string;
  text: string;
  ts: string;
  channel: string;
  blocks?: Block[];
  thread_ts?: string;
  metadata?: unknown;
  edited?: { user: string; ts: string };
  /** Only this person sees the message, and the API does not return it. */
  ephemeral_for?: string;
}

interface SlackChannel {
  id: string;
  name: string;
}

export interface SlackView {
  id: string;
  user: string;
  view: Record<string, unknown>;
}

/** Sent with every interaction. It can open one modal for this user within three seconds. */
interface Trigger {
  user: string;
  expiresAtMs: number;
  used: boolean;
}

/** A URL for later responses to an interaction: five within thirty minutes. */
interface ResponseUrl {
  user: string;
  channel: string;
  /** The clicked message. Absent for a slash command. */
  ts?: string;
  expiresAtMs: number;
  usesLeft: number;
}

export const TEAM: SlackTeam = { id: 'T100ACME', domain: 'acme' };
const GLOBEX: SlackTeam = { id: 'T200GLOBEX', domain: 'globex' };
const INITECH: SlackTeam = { id: 'T300INITECH', domain: 'initech' };
/** Each tenant has its own workspace. */
export const TEAMS: readonly SlackTeam[] = [TEAM, GLOBEX, INITECH];
export const APP = { user: 'U900BOT', bot_id: 'B900BOT', app_id: 'A900APP', name: 'countersign' };

const user = (id: string, name: string, real_name: string, team = TEAM): SlackUser => ({
  id,
  team,
  name,
  real_name,
  email: `${name}@${team.domain}.example`,
});

export const USERS: readonly SlackUser[] = [
  user('U100ANA', 'ana', 'Ana Ortiz'),
  user('U200BEN', 'ben', 'Ben Okafor'),
  user('U300CHLOE', 'chloe', 'Chloe Martin'),
  user('U400GRETA', 'greta', 'Greta Globex', GLOBEX),
  user('U500IRENE', 'irene', 'Irene Ito', INITECH),
  user('U600OSCAR', 'oscar', 'Oscar Operator'),
];

const TRIGGER_LIFETIME_MS = 3_000;
const RESPONSE_URL_LIFETIME_MS = 30 * 60_000;
const RESPONSE_URL_USES = 5;

/** Channels, messages and open modals of one team. */
export class SlackWorkspace {
  readonly team: SlackTeam;
  readonly #context: SystemContext;
  readonly #channels: Collection<SlackChannel>;
  readonly #messages: Collection<SlackMessage>;
  readonly #views: Collection<SlackView>;
  readonly #triggers: Collection<Trigger>;
  readonly #responseUrls: Collection<ResponseUrl>;

  constructor(context: SystemContext, team: SlackTeam) {
    this.team = team;
    this.#context = context;
    const name = (kind: string) => `slack.${team.domain}.${kind}`;
    this.#channels = context.store.collection(name('channel'));
    this.#messages = context.store.collection(name('message'));
    this.#views = context.store.collection(name('view'));
    this.#triggers = context.store.collection(name('trigger'));
    this.#responseUrls = context.store.collection(name('response_url'));
  }

  channels(): SlackChannel[] {
    return this.#channels.list();
  }

  channel(nameOrId: string): SlackChannel | undefined {
    return this.#channels.get(channelId(nameOrId));
  }

  /** Creates the channel for its first post. A post to a person creates a direct conversation. */
  channelForPost(nameOrId: string): SlackChannel {
    const existing = this.channel(nameOrId);
    if (existing) return existing;
    const person = USERS.find(({ id }) => id === nameOrId);
    const channel = { id: channelId(nameOrId), name: person ? `@${person.name}` : nameOrId.replace(/^#/, '') };
    this.#channels.put(channel.id, channel);
    return channel;
  }

  /** Oldest first. */
  messages(channel: string): SlackMessage[] {
    return this.#messages.list(channel);
  }

  latestMessages(channel: string, limit: number): SlackMessage[] {
    return this.#messages.latest(limit, channel).reverse();
  }

  message(channel: string, ts: string): SlackMessage | undefined {
    return this.#messages.get(`${channel}:${ts}`);
  }

  post(
    channel: SlackChannel,
    content: Pick<SlackMessage, 'text' | 'blocks' | 'thread_ts' | 'metadata' | 'ephemeral_for'>,
  ): SlackMessage {
    const { user, bot_id, app_id } = APP;
    const message: SlackMessage = {
      type: 'message',
      user,
      bot_id,
      app_id,
      ts: this.timestamp(),
      channel: channel.id,
      ...content,
    };
    this.save(message);
    return message;
  }

  /** A message of a person. */
  write(channel: SlackChannel, content: Pick<SlackMessage, 'user' | 'text' | 'thread_ts'>): SlackMessage {
    const message: SlackMessage = { type: 'message', ts: this.timestamp(), channel: channel.id, ...content };
    this.save(message);
    return message;
  }

  save(message: SlackMessage): void {
    this.#messages.put(`${message.channel}:${message.ts}`, withBlockIds(message), message.channel);
  }

  delete(message: SlackMessage): void {
    this.#messages.delete(`${message.channel}:${message.ts}`);
  }

  /** Seconds with six decimals. It follows the clock and is greater than every earlier one. */
  timestamp(): string {
    const micros = this.#context.store.next('slack.ts', Math.floor(this.#context.now() * 1000));
    return `${Math.floor(micros / 1_000_000)}.${String(micros % 1_000_000).padStart(6, '0')}`;
  }

  views(): SlackView[] {
    return this.#views.list();
  }

  view(id: string): SlackView | undefined {
    return this.#views.get(id);
  }

  /** A person has one modal at a time. A new one replaces the old one. */
  openView(user: string, view: Record<string, unknown>): SlackView {
    for (const open of this.views()) if (open.user === user) this.closeView(open.id);
    const opened = { id: `V${this.#context.store.nextId('slack.view', 10).toUpperCase()}`, user, view };
    this.saveView(opened);
    return opened;
  }

  saveView(view: SlackView): void {
    this.#views.put(view.id, { ...view, view: withBlockIds(view.view) });
  }

  closeView(id: string): void {
    this.#views.delete(id);
  }

  newTrigger(user: string): string {
    const id = `${this.#context.store.next('slack.trigger')}.${this.team.id.length}.${this.#context.store.nextId('slack.trigger_id', 24)}`;
    this.#triggers.put(id, { user, expiresAtMs: this.#context.now() + TRIGGER_LIFETIME_MS, used: false });
    return id;
  }

  /** The user for whom a modal may be opened, or Slack's error. */
  exchangeTrigger(id: string): { user: string } | { error: string } {
    const trigger = this.#triggers.get(id);
    if (!trigger) return { error: 'invalid_trigger_id' };
    if (trigger.used) return { error: 'exchanged_trigger_id' };
    if (this.#context.now() >= trigger.expiresAtMs) return { error: 'expired_trigger_id' };
    this.#triggers.put(id, { ...trigger, used: true });
    return { user: trigger.user };
  }

  newResponseUrl(about: Pick<ResponseUrl, 'user' | 'channel' | 'ts'>): string {
    const id = this.#context.store.nextId('slack.response_url', 24);
    const expiresAtMs = this.#context.now() + RESPONSE_URL_LIFETIME_MS;
    this.#responseUrls.put(id, { ...about, expiresAtMs, usesLeft: RESPONSE_URL_USES });
    return `${this.#context.baseUrl()}/actions/${this.team.id}/${id}`;
  }

  useResponseUrl(id: string): ResponseUrl | undefined {
    const url = this.#responseUrls.get(id);
    if (!url || url.usesLeft === 0 || this.#context.now() >= url.expiresAtMs) return undefined;
    this.#responseUrls.put(id, { ...url, usesLeft: url.usesLeft - 1 });
    return url;
  }
}

function channelId(nameOrId: string): string {
  if (USERS.some(({ id }) => id === nameOrId)) return `D${nameOrId.slice(1)}`;
  if (/^[CDG][A-Z0-9]{2,}$/.test(nameOrId)) return nameOrId;
  return `C${stableId(`slack channel ${nameOrId.replace(/^#/, '')}`, 10).toUpperCase()}`;
}

/** Slack adds an id to every block without one, because a click names its block. */
function withBlockIds<T extends { blocks?: unknown }>(holder: T): T {
  if (!Array.isArray(holder.blocks)) return holder;
  const blocks = holder.blocks.map((block: Block, index) => ({
    ...block,
    block_id: block.block_id ?? `block-${index + 1}`,
  }));
  return { ...holder, blocks };
}
