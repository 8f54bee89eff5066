import { credentialOf, LOCAL_CREDENTIAL_PREFIX } from '../credentials.ts';
import { fieldsOf, type SimCall, type SimResponse, textOf } from '../exchange.ts';
import type { SimulatedSystem, Surprise, SystemContext } from '../system.ts';
import { blockProblems, isTooLongForMessage, viewProblems } from './block-limits.ts';
import { placeOf } from './cards.ts';
import { richTextOf, storedText } from './rich-text.ts';
import { APP, type Block, type SlackMessage, type SlackUser, SlackWorkspace, TEAMS, USERS } from './workspace.ts';

type Arguments = Record<string, unknown>;
type Method = (args: Arguments) => SimResponse;

const TOKEN_PREFIXES = [LOCAL_CREDENTIAL_PREFIX, 'xoxb-', 'xoxp-'];
const DEFAULT_PAGE = 100;
const MAX_PAGE = 999;
/** chat.update refuses a longer text; chat.postMessage cuts a text that is longer than the second limit. */
const MAX_UPDATED_TEXT = 4_000;
const MAX_POSTED_TEXT = 40_000;
/** Arguments that are JSON even when the call is a form. */
const STRUCTURED_ARGUMENTS = ['blocks', 'metadata', 'view', 'attachments'];

export interface Slack extends SimulatedSystem {
  readonly workspaces: readonly SlackWorkspace[];
}

export function openSlack(context: SystemContext): Slack {
  const workspaces = TEAMS.map((team) => new SlackWorkspace(context, team));
  const [first] = workspaces;
  /** The end of a token names its workspace. Other tokens belong to the first workspace. */
  const workspaceOf = (token: string) => workspaces.find(({ team }) => token.endsWith(`-${team.domain}`)) ?? first;
  return {
    workspaces,
    answer: (call, surprise) => {
      const [root, name = '', responseUrlId = ''] = call.segments;
      if (root === 'actions' && call.method === 'POST') {
        const workspace = workspaces.find(({ team }) => team.id === name);
        return workspace ? useResponseUrl(workspace, responseUrlId, call) : EXPIRED_URL;
      }
      if (root !== 'api') return { status: 404, body: { ok: false, error: 'not_found' } };
      if (call.bodyIsMalformed) return refused('invalid_json');
      const args = argumentsOf(call);
      const token = credentialOf(call.header('authorization'), 'bearer') || textOf(args.token);
      if (token === '') return refused('not_authed');
      const workspace = workspaceOf(token);
      if (!workspace || !TOKEN_PREFIXES.some((prefix) => token.startsWith(prefix))) return refused('invalid_auth');
      if (surprise === 'lists_limited' && LISTS.includes(name)) return LIMITED;
      const answer = methodsOf(workspace)[name]?.(surprised(args, surprise));
      return answer ? withWarnings(answer, surprise) : refused('unknown_method', { req_method: name });
    },
    refuse: (status) => ({ status, body: { ok: false, error: status === 429 ? 'ratelimited' : 'internal_error' } }),
  };
}

const LISTS = ['conversations.list', 'users.conversations', 'conversations.history', 'conversations.replies'];
const LIMITED: SimResponse = {
  status: 429,
  body: { ok: false, error: 'ratelimited' },
  headers: { 'retry-after': '30' },
};
const CUT_TO_CHARACTERS = 10;

function surprised(args: Arguments, surprise: Surprise | undefined): Arguments {
  if (surprise === 'payload_hidden') return { ...args, include_all_metadata: false };
  if (surprise !== 'text_cut') return args;
  return { ...args, text: textOf(args.text).slice(0, CUT_TO_CHARACTERS), blocks: undefined };
}

function withWarnings(answer: SimResponse, surprise: Surprise | undefined): SimResponse {
  const warning =
    surprise === 'text_cut' ? 'message_truncated' : surprise === 'warnings' ? 'missing_charset' : undefined;
  if (warning === undefined) return answer;
  const body = fieldsOf(answer.body);
  const response_metadata = { ...fieldsOf(body.response_metadata), warnings: [warning] };
  return { ...answer, body: { ...body, warning, response_metadata } };
}

function methodsOf(workspace: SlackWorkspace): Record<string, Method> {
  const { team } = workspace;
  const members = USERS.filter((user) => user.team.id === team.id);
  return {
    'auth.test': () =>
      ok({ team: team.domain, team_id: team.id, user: APP.name, user_id: APP.user, bot_id: APP.bot_id }),
    'chat.postMessage': (args) => postMessage(workspace, args),
    'chat.update': (args) => updateMessage(workspace, args),
    'chat.getPermalink': (args) => permalink(workspace, args),
    'conversations.open': ({ users }) => openDirect(workspace, textOf(users)),
    'views.open': (args) => openView(workspace, args),
    'conversations.list': (args) => channelPage(workspace, args),
    'users.conversations': (args) => channelPage(workspace, args),
    'conversations.history': (args) => history(workspace, args),
    'conversations.replies': (args) => replies(workspace, args),
    'users.info': ({ user }) =>
      userResponse(
        members.find(({ id }) => id === user),
        'user_not_found',
      ),
    'users.lookupByEmail': ({ email }) =>
      userResponse(
        members.find((user) => user.email === email),
        'users_not_found',
      ),
  };
}

const EXPIRED_URL: SimResponse = { status: 404, body: { ok: false, error: 'used_or_expired_url' } };

/** Slack's errors have status 200. */
const refused = (error: string, extra: Record<string, unknown> = {}): SimResponse => ({
  status: 200,
  body: { ok: false, error, ...extra },
});

const ok = (body: Record<string, unknown>): SimResponse => ({ status: 200, body: { ok: true, ...body } });

function argumentsOf(call: SimCall): Arguments {
  const args: Arguments = { ...Object.fromEntries(call.query), ...fieldsOf(call.body) };
  for (const name of STRUCTURED_ARGUMENTS) {
    const value = args[name];
    if (typeof value !== 'string') continue;
    try {
      args[name] = JSON.parse(value);
    } catch {
      // It stays text, and the method returns the error.
    }
  }
  return args;
}

const invalidBlocks = (messages: string[]): SimResponse =>
  refused('invalid_blocks', { errors: messages, response_metadata: { messages } });

function postMessage(workspace: SlackWorkspace, args: Arguments): SimResponse {
  const text = textOf(args.text);
  if (textOf(args.channel) === '') return refused('channel_not_found');
  if (text === '' && args.blocks === undefined && args.attachments === undefined) return refused('no_text');
  const problems = args.blocks === undefined ? [] : blockProblems(args.blocks);
  if (problems.length > 0) return invalidBlocks(problems);
  if (isTooLongForMessage(args.blocks)) return refused('msg_blocks_too_long');
  const channel = workspace.channelForPost(textOf(args.channel));
  const message = workspace.post(channel, {
    text: storedText(text.slice(0, MAX_POSTED_TEXT)),
    ...(args.blocks !== undefined && { blocks: args.blocks as Block[] }),
    ...(textOf(args.thread_ts) !== '' && { thread_ts: textOf(args.thread_ts) }),
    ...(args.metadata !== undefined && { metadata: args.metadata }),
  });
  return ok({
    channel: channel.id,
    ts: message.ts,
    message: shown(workspace, workspace.message(channel.id, message.ts) ?? message),
  });
}

/** Text without blocks removes the blocks. Without both, the message keeps its text and blocks. */
function updateMessage(workspace: SlackWorkspace, args: Arguments): SimResponse {
  const channel = workspace.channel(textOf(args.channel));
  if (!channel) return refused('channel_not_found');
  const message = workspace.message(channel.id, textOf(args.ts));
  if (!message) return refused('message_not_found');
  if (args.text === undefined && args.blocks === undefined && args.metadata === undefined) return refused('no_text');
  const problems = args.blocks === undefined ? [] : blockProblems(args.blocks);
  if (problems.length > 0) return invalidBlocks(problems);
  if (isTooLongForMessage(args.blocks)) return refused('msg_blocks_too_long');
  if (textOf(args.text).length > MAX_UPDATED_TEXT) return refused('msg_too_long');
  if (isRichText(message.blocks) && Array.isArray(args.blocks) && !args.blocks.some(isRichTextBlock)) {
    return refused('block_mismatch');
  }
  const { blocks: oldBlocks, ...rest } = message;
  const blocks =
    args.blocks === undefined ? (args.text === undefined ? oldBlocks : undefined) : (args.blocks as Block[]);
  const updated: SlackMessage = {
    ...rest,
    ...(blocks !== undefined && { blocks }),
    ...(args.text !== undefined && { text: storedText(textOf(args.text)) }),
    ...(args.metadata !== undefined && { metadata: args.metadata }),
    edited: { user: APP.user, ts: workspace.timestamp() },
  };
  workspace.save(updated);
  const { ts: _ts, ...withoutTime } = shown(workspace, updated);
  return ok({ channel: channel.id, ts: message.ts, text: updated.text, message: withoutTime });
}

/** The conversation of the app with one person. */
function openDirect(workspace: SlackWorkspace, user: string): SimResponse {
  const known = USERS.some(({ id, team }) => id === user && team.id === workspace.team.id);
  if (!known) return refused('user_not_found');
  return ok({ channel: { id: workspace.channelForPost(user).id } });
}

function permalink(workspace: SlackWorkspace, args: Arguments): SimResponse {
  const channel = channelById(workspace, args);
  if (!channel) return refused('channel_not_found');
  const message = workspace.message(channel.id, textOf(args.message_ts));
  if (!message) return refused('message_not_found');
  const { domain } = workspace.team;
  const address = `https://${domain}.slack.com/archives/${placeOf(channel.id, message.ts)}`;
  return ok({ channel: channel.id, permalink: address });
}

const isRichTextBlock = (block: unknown): boolean => fieldsOf(block).type === 'rich_text';
const isRichText = (blocks: Block[] | undefined): boolean => blocks?.every(isRichTextBlock) ?? false;

function openView(workspace: SlackWorkspace, args: Arguments): SimResponse {
  const problems = viewProblems(args.view);
  if (problems) return refused(problems.error, { response_metadata: { messages: problems.messages } });
  const trigger = workspace.exchangeTrigger(textOf(args.trigger_id));
  if ('error' in trigger) return refused(trigger.error);
  const { id } = workspace.openView(trigger.user, fieldsOf(args.view));
  return ok({
    view: { ...workspace.view(id)?.view, id, team_id: workspace.team.id, app_id: APP.app_id, bot_id: APP.bot_id },
  });
}

/** Slack accepts the name of a channel for a post, but only its id for a read. */
function channelById(workspace: SlackWorkspace, args: Arguments) {
  return workspace.channels().find(({ id }) => id === textOf(args.channel));
}

/** Newest first, without the replies of threads. `oldest` and `latest` are exclusive unless `inclusive`. */
function history(workspace: SlackWorkspace, args: Arguments): SimResponse {
  const channel = channelById(workspace, args);
  if (!channel) return refused('channel_not_found');
  const top = workspace
    .messages(channel.id)
    .filter(({ ts, thread_ts, ephemeral_for }) => !ephemeral_for && (!thread_ts || thread_ts === ts));
  return messagePage(workspace, top.reverse(), args);
}

function replies(workspace: SlackWorkspace, args: Arguments): SimResponse {
  const channel = channelById(workspace, args);
  if (!channel) return refused('channel_not_found');
  const thread = workspace
    .messages(channel.id)
    .filter((message) => [message.ts, message.thread_ts].includes(textOf(args.ts)));
  return thread.length > 0 ? messagePage(workspace, thread, args) : refused('thread_not_found');
}

function messagePage(workspace: SlackWorkspace, messages: readonly SlackMessage[], args: Arguments): SimResponse {
  const inclusive = isTrue(args.inclusive);
  const oldest = String(args.oldest ?? '');
  const latest = String(args.latest ?? '');
  // Timestamps have the same length, so they are compared as text. As numbers their microseconds would be rounded.
  const wanted = messages.filter(
    ({ ts }) =>
      (oldest === '' || ts > oldest || (inclusive && ts === oldest)) &&
      (latest === '' || ts < latest || (inclusive && ts === latest)),
  );
  const { items, next_cursor } = pageOf(wanted, args);
  const has_more = next_cursor !== '';
  const page = items.map((message) => shown(workspace, message, isTrue(args.include_all_metadata)));
  return ok({ messages: page, has_more, response_metadata: { next_cursor } });
}

function pageOf<T>(all: readonly T[], args: Arguments): { items: T[]; next_cursor: string } {
  const start = Number(Buffer.from(textOf(args.cursor), 'base64').toString('utf8').replace('offset:', '')) || 0;
  const end = start + (Number(args.limit ?? DEFAULT_PAGE) || DEFAULT_PAGE);
  return {
    items: all.slice(start, end),
    next_cursor: end < all.length ? Buffer.from(`offset:${end}`).toString('base64') : '',
  };
}

/** The app is in every channel of the simulator. */
function channelPage(workspace: SlackWorkspace, args: Arguments): SimResponse {
  if (Number(args.limit ?? DEFAULT_PAGE) > MAX_PAGE) return refused('invalid_limit');
  const { items, next_cursor } = pageOf(workspace.channels(), args);
  const channels = items.map(({ id, name }) => ({ id, name, is_channel: true, is_archived: false }));
  return ok({ channels, response_metadata: { next_cursor } });
}

const isTrue = (value: unknown): boolean => value === true || value === 'true' || value === '1' || value === 1;

/** Without `include_all_metadata` Slack returns only the type of the metadata. */
function shown(
  { team }: SlackWorkspace,
  { channel: _channel, metadata, ...message }: SlackMessage,
  allMetadata = true,
): Record<string, unknown> {
  const { event_type } = fieldsOf(metadata);
  return {
    ...message,
    blocks: message.blocks ?? [richTextOf(message.text)],
    team: team.id,
    ...(metadata !== undefined && { metadata: allMetadata ? metadata : { event_type } }),
  };
}

function userResponse(user: SlackUser | undefined, error: string): SimResponse {
  if (!user) return refused(error);
  const { id, team, name, real_name, email } = user;
  return ok({
    user: { id, team_id: team.id, name, real_name, deleted: false, is_bot: false, profile: { email, real_name } },
  });
}

/** A call of a response_url: replaces or deletes its message, or posts another message to one person or to all. */
function useResponseUrl(workspace: SlackWorkspace, id: string, call: SimCall): SimResponse {
  const url = workspace.useResponseUrl(id);
  const channel = url && workspace.channel(url.channel);
  if (!url || !channel) return EXPIRED_URL;
  const { blocks, replace_original, delete_original } = fieldsOf(call.body);
  const problems = blocks === undefined ? [] : blockProblems(blocks);
  if (problems.length > 0) return { status: 400, body: { ok: false, error: 'invalid_blocks', errors: problems } };
  const original = workspace.message(url.channel, url.ts ?? '');
  if (original && isTrue(delete_original)) workspace.delete(original);
  else if (original && isTrue(replace_original)) {
    const { text, blocks: newBlocks } = contentOf(fieldsOf(call.body));
    workspace.save({ ...original, blocks: newBlocks, text });
  } else postResponse(workspace, url, fieldsOf(call.body));
  return { status: 200, body: { ok: true } };
}

const contentOf = ({ text, blocks }: Record<string, unknown>) => ({
  text: textOf(text),
  ...(Array.isArray(blocks) && { blocks: blocks as Block[] }),
});

/** The response to a click or a command is visible only to its user, unless it is `in_channel`. */
export function postResponse(
  workspace: SlackWorkspace,
  { user, channel }: { user: string; channel: string },
  body: Record<string, unknown>,
): void {
  const forAll = body.response_type === 'in_channel';
  workspace.post(workspace.channelForPost(channel), { ...contentOf(body), ...(!forAll && { ephemeral_for: user }) });
}
